/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, the way Python's round() and the JSON of the old server show them. None of it depends on the locale.
 */
#ifndef LENSING_FEATURES_NUMBER_H
#define LENSING_FEATURES_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Longest text of any number here, without a NUL, which is not written. */
#define LNS_NUMBER_SIZE 32

/* Shortest text that reads back as `value`: always with a point or an exponent ("200.0", "1e-6"), positional from 1e-5
 * up to 1e16. NaN and infinities give NaN, Infinity, -Infinity. Returns the length. */
size_t lns_number_shortest(double value, char *text);

/* Largest `decimals` of lns_number_rounded(). */
#define LNS_NUMBER_DECIMALS 6

/* `value` rounded to `decimals` places, to nearest of the exact binary value and ties to even, in the text of
 * lns_number_shortest(). Returns the length. */
size_t lns_number_rounded(double value, int decimals, char *text);

size_t lns_number_integer(int64_t value, char *text);

#endif
