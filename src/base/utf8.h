/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8, as RFC 3629 has it: no longer forms than needed, no surrogates, nothing above U+10FFFF. */
#ifndef LENSING_BASE_UTF8_H
#define LENSING_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define LNS_UTF8_REPLACEMENT 0xfffd

/* Length of the character at the start of `size` > 0 bytes; when there is none, 0 and in `*bad` the bytes that one
 * U+FFFD stands for. */
size_t lns_utf8_length(const char *text, size_t size, size_t *bad);

/* Writes a character that is no surrogate to `bytes`, which has room for 4; returns its length. */
size_t lns_utf8_encode(uint32_t character, char *bytes);

#endif
