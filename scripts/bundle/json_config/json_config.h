/* SPDX-License-Identifier: Apache-2.0 */
#define JSON_C_HAVE_INTTYPES_H 1
