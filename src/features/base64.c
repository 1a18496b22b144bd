/* SPDX-License-Identifier: Apache-2.0 */
#include "features/base64.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#if defined(__x86_64__)
/* Encodes 24 bytes at a time, as long as 28 can be read; returns how many it has encoded. */
__attribute__((target("avx2"))) static size_t encode_avx2(const unsigned char *in, size_t size, char *text) {
    /* Bytes a b c of each three, put as b a c b into 32 bits: so the 6-bit values lie across 16-bit halves, each of
     * which one multiplication moves to its place. */
    const __m256i order = _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10, 1, 0, 2, 1, 4, 3, 5, 4, 7,
                                           6, 8, 7, 10, 9, 11, 10);
    const char d = '0' - 52;
    const __m256i distance = _mm256_setr_epi8('a' - 26, d, d, d, d, d, d, d, d, d, d, '+' - 62, '/' - 63, 'A', 0, 0,
                                              'a' - 26, d, d, d, d, d, d, d, d, d, d, '+' - 62, '/' - 63, 'A', 0, 0);
    size_t i = 0;
    for (; i + 28 <= size; i += 24, text += 32) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + i + 12));
        const __m256i three = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), order);
        /* The first and third value are shifted right by 10 and 6, the second and fourth left by 4 and 8. */
        const __m256i odd =
            _mm256_mulhi_epu16(_mm256_and_si256(three, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
        const __m256i even =
            _mm256_mullo_epi16(_mm256_and_si256(three, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));
        const __m256i value = _mm256_or_si256(odd, even);
        /* What to add: 0 for both runs of letters and 1 to 12 for what follows, which is then split at 26. */
        const __m256i behind = _mm256_subs_epu8(value, _mm256_set1_epi8(51));
        const __m256i capital = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), value);
        const __m256i run = _mm256_or_si256(behind, _mm256_and_si256(capital, _mm256_set1_epi8(13)));
        const __m256i character = _mm256_add_epi8(value, _mm256_shuffle_epi8(distance, run));
        _mm256_storeu_si256((__m256i *)(void *)text, character);
    }
    return i;
}
#endif

/* The bulk, with the kernels of the level; returns how many bytes it has encoded, a multiple of 3. */
static size_t encode_bulk(const unsigned char *in, size_t size, char *text) {
#if defined(__x86_64__)
    lns_cpu_level level;
    if (lns_cpu_choose_level(&level) == LNS_OK && level >= LNS_CPU_AVX2)
        return encode_avx2(in, size, text);
#else
    (void)in, (void)size, (void)text;
#endif
    return 0;
}

void lns_base64_encode(const void *bytes, size_t size, char *text) {
    const unsigned char *in = bytes;
    size_t i = encode_bulk(in, size, text);
    text += i / 3 * 4;
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
