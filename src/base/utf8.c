/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

/* Length that the first byte announces, 0 when no character begins with it, and the range of the second byte. */
static size_t announced(unsigned first, unsigned *low, unsigned *high) {
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    if (first == 0xe0)
        *low = 0xa0; /* shorter forms exist below */
    if (first == 0xed)
        *high = 0x9f; /* surrogates above */
    if (first == 0xf0)
        *low = 0x90;
    if (first == 0xf4)
        *high = 0x8f; /* U+10FFFF is the last character */
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t lns_utf8_length(const char *text, size_t size, size_t *bad) {
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned low;
    unsigned high;
    const size_t length = announced(bytes[0], &low, &high);
    *bad = 1;
    for (size_t i = 1; i < length; i++) {
        if (i == size || bytes[i] < low || bytes[i] > high)
            return 0;
        *bad = i + 1;
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

size_t lns_utf8_encode(uint32_t character, char *bytes) {
    const size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1; character >>= 6)
        bytes[i] = (char)(0x80 | (character & 0x3f));
    bytes[0] = (char)(marks[length] | character);
    return length;
}
