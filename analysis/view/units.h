/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text, as the views print them: the model's own, since the sentences of a cause have figures in them too. */
#ifndef VIEW_UNITS_H
#define VIEW_UNITS_H

#include "analysis/base/units.h"

#endif
