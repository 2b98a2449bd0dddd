/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/platform/unwinder.h"
#include "interpose/platform/laws.h"

struct cuf_unwinder cuf_unwinder;
