/* SPDX-License-Identifier: Apache-2.0 */
#include "features/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void lns_base64_encode(const void *bytes, size_t size, char *text) {
    const unsigned char *in = bytes;
    size_t i = 0;
    for (; i + 3 <= size; i += 3, text += 4) {
        const unsigned three = (unsigned)in[i] << 16 | (unsigned)in[i + 1] << 8 | in[i + 2];
        text[0] = alphabet[three >> 18];
        text[1] = alphabet[three >> 12 & 63];
        text[2] = alphabet[three >> 6 & 63];
        text[3] = alphabet[three & 63];
    }
    if (i == size)
        return;
    const int two = i + 2 == size;
    const unsigned rest = (unsigned)in[i] << 16 | (two ? (unsigned)in[i + 1] << 8 : 0);
    text[0] = alphabet[rest >> 18];
    text[1] = alphabet[rest >> 12 & 63];
    text[2] = '=';
    if (two)
        text[2] = alphabet[rest >> 6 & 63];
    text[3] = '=';
}
