/* SPDX-License-Identifier: Apache-2.0 */
/* The demanglers ask by names that the compiler's command line has. */
