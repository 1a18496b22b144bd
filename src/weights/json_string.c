/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/json_string.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

#define IN_STRING "in a string"
#define IN_ESCAPE "in an escape"
#define NOT_UTF8 "is not UTF-8"

static int hexadecimal_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Reads the four digits behind \u and moves `*at` behind them, or returns 0 with `*at` at what is no digit. */
static int read_unit(const char **at, const char *end, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++, ++*at) {
        const int digit = *at < end ? hexadecimal_digit(**at) : -1;
        if (digit < 0)
            return 0;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return 1;
}

/* Reads a whole \u escape when there is one at `*at`. */
static int read_another_unit(const char **at, const char *end, uint32_t *unit) {
    if (end - *at < 2 || memcmp(*at, "\\u", 2) != 0)
        return 0;
    *at += 2;
    return read_unit(at, end, unit);
}

/* Reads what follows \u: one unit of UTF-16, or the first of a pair. */
static const char *read_units(const char **at, const char *end, char **out) {
    uint32_t character;
    if (!read_unit(at, end, &character))
        return IN_ESCAPE;
    if (character >= 0xd800 && character < 0xdc00) {
        const char *second = *at;
        uint32_t low;
        if (read_another_unit(&second, end, &low) && low >= 0xdc00 && low < 0xe000) {
            character = 0x10000 + ((character & 0x3ff) << 10 | (low & 0x3ff));
            *at = second;
        }
    }
    if (character >= 0xd800 && character < 0xe000)
        character = LNS_UTF8_REPLACEMENT;
    *out += lns_utf8_encode(character, *out);
    return NULL;
}

/* Reads the escape whose backslash is at `*at`. */
static const char *read_escape(const char **at, const char *end, char **out) {
    if (++*at == end)
        return IN_ESCAPE;
    char c = **at;
    switch (c) {
    case 'u':
        ++*at;
        return read_units(at, end, out);
    case 'b':
        c = '\b';
        break;
    case 'f':
        c = '\f';
        break;
    case 'n':
        c = '\n';
        break;
    case 'r':
        c = '\r';
        break;
    case 't':
        c = '\t';
        break;
    case '"':
    case '\\':
    case '/':
        break;
    default:
        return IN_ESCAPE;
    }
    ++*at;
    *(*out)++ = c;
    return NULL;
}

static const char *read_character(const char **at, const char *end, char **out) {
    if ((unsigned char)**at < 0x20)
        return IN_STRING;
    const size_t rest = (size_t)(end - *at);
    size_t bad;
    const size_t length = lns_utf8_length(*at, rest, &bad);
    if (length == 0) {
        if (bad == rest)
            *at = end; /* the character is only cut off */
        return NOT_UTF8;
    }
    memcpy(*out, *at, length);
    *at += length;
    *out += length;
    return NULL;
}

const char *lns_json_string_read(const char **at, const char *end, char **out) {
    for (++*at; *at < end && **at != '"';) {
        const char *wrong = **at == '\\' ? read_escape(at, end, out) : read_character(at, end, out);
        if (wrong != NULL)
            return wrong;
    }
    if (*at == end)
        return IN_STRING;
    ++*at;
    *(*out)++ = '\0';
    return NULL;
}
