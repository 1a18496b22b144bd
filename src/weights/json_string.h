/* SPDX-License-Identifier: Apache-2.0 */
/* The characters of a JSON string. */
#ifndef LENSING_WEIGHTS_JSON_STRING_H
#define LENSING_WEIGHTS_JSON_STRING_H

/* Reads the string at `*at`, where its quote is, and moves `*at` behind it. Writes its characters and a NUL to `*out`,
 * which needs as much room as the string takes with its quotes, and moves `*out` behind them. NUL characters of the
 * string are kept; a surrogate without its other half becomes U+FFFD. Returns NULL, or what is wrong with the byte at
 * `*at`; when that is `end`, the text ends inside the string. */
const char *lns_json_string_read(const char **at, const char *end, char **out);

#endif
