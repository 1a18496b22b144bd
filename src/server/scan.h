/* SPDX-License-Identifier: Apache-2.0 */
/* Searching long texts, 64 bytes a step. */
#ifndef LENSING_SERVER_SCAN_H
#define LENSING_SERVER_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t scan_bytes __attribute__((vector_size(16)));
typedef uint64_t scan_words __attribute__((vector_size(16)));

static inline scan_bytes scan_load(const char *at) {
    scan_bytes bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

static inline bool scan_any(scan_bytes bytes) {
    const scan_words words = (scan_words)bytes;
    return (words[0] | words[1]) != 0;
}

static inline scan_bytes scan_all(uint8_t byte) {
    return (scan_bytes){byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte};
}

/* The first byte in [at, end) that cannot stand in a JSON string as it is: quote, backslash, control character; with
 * `surrogates` also 0xED, which begins the UTF-8 form of a surrogate. `end` if there is none. */
static inline const char *scan_string(const char *at, const char *end, bool surrogates) {
    const scan_bytes quote = scan_all('"'), backslash = scan_all('\\'), blank = scan_all(' ');
    const scan_bytes surrogate = scan_all(surrogates ? 0xED : '"');
    for (; end - at >= 64; at += 64) {
        scan_bytes found = {0};
        for (int i = 0; i < 4; i++) {
            const scan_bytes part = scan_load(at + 16 * i);
            found |= (scan_bytes)(part == quote) | (scan_bytes)(part == backslash) | (scan_bytes)(part < blank) |
                     (scan_bytes)(part == surrogate);
        }
        if (scan_any(found))
            break;
    }
    for (; at < end; at++) {
        const uint8_t byte = (uint8_t)*at;
        if (byte < ' ' || byte == '"' || byte == '\\' || (surrogates && byte == 0xED))
            break;
    }
    return at;
}

/* The first byte in [at, end) that is not ASCII, or `end`. */
static inline const char *scan_ascii(const char *at, const char *end) {
    const scan_bytes high = scan_all(0x80);
    for (; end - at >= 64; at += 64) {
        const scan_bytes all = scan_load(at) | scan_load(at + 16) | scan_load(at + 32) | scan_load(at + 48);
        if (scan_any(all & high))
            break;
    }
    while (at < end && (uint8_t)*at < 0x80)
        at++;
    return at;
}

#endif
