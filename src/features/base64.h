/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 of RFC 4648, with padding and without line breaks. */
#ifndef LENSING_FEATURES_BASE64_H
#define LENSING_FEATURES_BASE64_H

#include <stddef.h>

/* Length of the text of `size` bytes. */
#define LNS_BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/* Writes LNS_BASE64_SIZE(size) characters, no NUL. The bytes may be the end of the room for the text: 24 of them are read
 * before their 32 characters are written, so what is still to be read lies behind. */
void lns_base64_encode(const void *bytes, size_t size, char *text);

#endif
