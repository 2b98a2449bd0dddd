/* SPDX-License-Identifier: Apache-2.0 */
/* What json-c's CMake makes of json.h.cmakein. */
#ifndef _json_h_
#define _json_h_

#include "arraylist.h"
#include "debug.h"
#include "json_c_version.h"
#include "json_object.h"
#include "json_object_iterator.h"
#include "json_pointer.h"
#include "json_tokener.h"
#include "json_util.h"
#include "linkhash.h"

#endif
