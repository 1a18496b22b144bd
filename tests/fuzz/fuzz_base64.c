/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding base64, apart and in its own place, against a decoder of one character at a time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/server/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int value_of(uint8_t c) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c != 0 ? strchr(alphabet, c) : NULL;
    return found != NULL ? (int)(found - alphabet) : -1;
}

/* Whether the text is good: characters of the alphabet and padding, more of which is allowed behind whole fours only.
 */
static bool decode_slowly(const uint8_t *text, size_t size, uint8_t *out, size_t *out_size) {
    size_t count = 0, written = 0;
    uint32_t bits = 0;
    for (; count < size && value_of(text[count]) >= 0; count++) {
        bits = bits << 6 | (uint32_t)value_of(text[count]);
        if (count % 4 != 0)
            out[written++] = (uint8_t)(bits >> (6 - 2 * (count % 4)));
    }
    for (size_t i = count; i < size; i++) {
        if (text[i] != '=')
            return false;
    }
    *out_size = written;
    return count % 4 == 0 ? count > 0 || size == 0 : count % 4 != 1 && size - count == 4 - count % 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[BASE64_ERROR_SIZE];
    size_t out_size = 0, in_place_size = 0, slow_size = 0;
    uint8_t *out = malloc(base64_capacity(size)), *slow = malloc(size + 1);
    char *text = malloc(size + 1);
    if (out == NULL || slow == NULL || text == NULL)
        abort();
    memcpy(text, data, size);
    const bool good = base64_decode((const char *)data, size, out, &out_size, error);
    if (base64_decode(text, size, text, &in_place_size, error) != good ||
        decode_slowly(data, size, slow, &slow_size) != good)
        abort();
    if (good && (out_size != in_place_size || out_size != slow_size || memcmp(out, text, out_size) != 0 ||
                 memcmp(out, slow, out_size) != 0))
        abort();
    free(out);
    free(slow);
    free(text);
    return 0;
}
