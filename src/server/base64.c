/* SPDX-License-Identifier: Apache-2.0 */
#include "base64.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define NOT_BASE64 0xFF

size_t base64_capacity(size_t size) {
    return size / 4 * 3 + 3;
}

static void fill_table(uint8_t table[256]) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    memset(table, NOT_BASE64, 256);
    for (uint8_t i = 0; i < 64; i++)
        table[(uint8_t)alphabet[i]] = i;
}

#if defined(__x86_64__)
/* Characters in [first, last] become `shift` in the result; others 0. Everything is below 128 here: a byte beyond is
 * negative and in no range. */
__attribute__((target("avx2"))) static inline __m256i range_shift(__m256i text, char first, char last, char shift) {
    const __m256i outside = _mm256_or_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(first), text),
                                            _mm256_cmpgt_epi8(text, _mm256_set1_epi8(last)));
    return _mm256_andnot_si256(outside, _mm256_set1_epi8(shift));
}

/* Decodes 32 characters a step, up to one that is not of the alphabet or to the end, which it leaves to others. Returns
 * the number of characters. A step writes 32 bytes, of which 24 count: there are at least 44 characters when it does,
 * so the space holds 33, and they are behind the characters read when `out` is `text`. */
__attribute__((target("avx2"))) static size_t decode_avx2(const uint8_t *text, size_t size, uint8_t *out) {
    const __m256i order = _mm256_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2, 1, 0, 6, 5, 4, 10,
                                           9, 8, 14, 13, 12, -1, -1, -1, -1);
    const __m256i together = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
    size_t i = 0;
    for (; size - i >= 44; i += 32, out += 24) {
        const __m256i characters = _mm256_loadu_si256((const __m256i *)(text + i));
        /* No shift is 0, so what has none is not of the alphabet. */
        __m256i shift = range_shift(characters, 'A', 'Z', -'A');
        shift = _mm256_or_si256(shift, range_shift(characters, 'a', 'z', 26 - 'a'));
        shift = _mm256_or_si256(shift, range_shift(characters, '0', '9', 52 - '0'));
        shift = _mm256_or_si256(shift, range_shift(characters, '+', '+', 62 - '+'));
        shift = _mm256_or_si256(shift, range_shift(characters, '/', '/', 63 - '/'));
        if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(shift, _mm256_setzero_si256())) != 0)
            break;
        const __m256i values = _mm256_add_epi8(characters, shift);
        /* Pairs of 6 bits to 12, pairs of these to 24, the three bytes of each in order, and both halves together. */
        const __m256i pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi16(0x0140));
        const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000));
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, order), together);
        _mm256_storeu_si256((__m256i *)out, bytes);
    }
    return i;
}
#endif

/* The same, four characters a step. */
static size_t decode_fours(const uint8_t *text, size_t size, const uint8_t table[256], uint8_t *out) {
    size_t i = 0;
    for (; size - i >= 4; i += 4, out += 3) {
        const uint8_t a = table[text[i]], b = table[text[i + 1]], c = table[text[i + 2]], d = table[text[i + 3]];
        if ((a | b | c | d) >= 64)
            break;
        out[0] = (uint8_t)(a << 2 | b >> 4);
        out[1] = (uint8_t)(b << 4 | c >> 2);
        out[2] = (uint8_t)(c << 6 | d);
    }
    return i;
}

static size_t decode_plain(const uint8_t *text, size_t size, const uint8_t table[256], uint8_t *out) {
    size_t done = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        done = decode_avx2(text, size, out);
#endif
    return done + decode_fours(text + done, size - done, table, out + done / 4 * 3);
}

/* Python makes bytes of the text before it looks at them, so a character beyond ASCII is the first error wherever it
 * is. All of the text before `i` is ASCII. */
static bool find_non_ascii(const uint8_t *text, size_t i, size_t size, char *error) {
    while (i < size && text[i] < 0x80)
        i++;
    if (i == size)
        return false;
    static const char reason[] = "ordinal not in range(128)";
    size_t end = i, count = 0;
    for (; end < size && text[end] >= 0x80; end++)
        count += (text[end] & 0xC0) != 0x80;
    if (count > 1) {
        snprintf(error, BASE64_ERROR_SIZE,
                 "UnicodeEncodeError: 'ascii' codec can't encode characters in position %zu-%zu: %s", i, i + count - 1,
                 reason);
        return true;
    }
    uint32_t character = end - i == 2 ? text[i] & 31u : end - i == 3 ? text[i] & 15u : text[i] & 7u;
    for (size_t k = i + 1; k < end; k++)
        character = character << 6 | (text[k] & 63u);
    char shown[16];
    snprintf(shown, sizeof shown,
             character < 0x100     ? "\\x%02x"
             : character < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
             (unsigned)character);
    snprintf(error, BASE64_ERROR_SIZE,
             "UnicodeEncodeError: 'ascii' codec can't encode character '%s' in position %zu: %s", shown, i, reason);
    return true;
}

/* Decodes what decode_plain() left, at most three characters of the alphabet up to the first other one. The message, or
 * NULL; nothing is written before the end is found good. `*last` is the number of characters that do not make up four.
 */
static const char *decode_end(const uint8_t *text, size_t size, const uint8_t table[256], uint8_t *out,
                              size_t *out_size, int *last) {
    uint32_t bits = 0;
    int count = 0, padding = 0;
    bool padded = false;
    *out_size = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '=') {
            padded = true;
            if (count >= 2 && count + ++padding >= 4) {
                if (i + 1 < size)
                    return "Excess data after padding";
                out[0] = (uint8_t)(count == 2 ? bits >> 4 : bits >> 10);
                if (count == 3)
                    out[1] = (uint8_t)(bits >> 2);
                *out_size = (size_t)count - 1;
                return NULL;
            }
            continue;
        }
        if (table[text[i]] == NOT_BASE64)
            return "Only base64 data is allowed";
        if (padded)
            return "Discontinuous padding not allowed";
        bits = bits << 6 | table[text[i]];
        count++;
    }
    *last = count;
    return count != 0 ? "Incorrect padding" : NULL;
}

bool base64_decode(const char *text, size_t size, void *out, size_t *out_size, char error[BASE64_ERROR_SIZE]) {
    const uint8_t *in = (const uint8_t *)text;
    uint8_t table[256];
    fill_table(table);
    const size_t done = decode_plain(in, size, table, out);
    size_t rest = 0;
    int last = 0;
    /* Not a character that has been decoded in its place. */
    const bool leading = done == 0 && size > 0 && text[0] == '=';
    const char *message = leading
                              ? "Leading padding not allowed"
                              : decode_end(in + done, size - done, table, (uint8_t *)out + done / 4 * 3, &rest, &last);
    *out_size = done / 4 * 3 + rest;
    if (message == NULL)
        return true;
    if (find_non_ascii(in, done, size, error))
        return false;
    if (last == 1)
        snprintf(
            error, BASE64_ERROR_SIZE,
            "Error: Invalid base64-encoded string: number of data characters (%zu) cannot be 1 more than a multiple "
            "of 4",
            done + 1);
    else
        snprintf(error, BASE64_ERROR_SIZE, "Error: %s", message);
    return false;
}
