/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int hexadecimal(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A run of ASCII with its %xx as bytes, one by one; -1 at its end. */
typedef struct byte_source {
    const char *at;
    const char *end;
} byte_source;

static int next_byte(byte_source *source) {
    const char *at = source->at;
    if (at == source->end || (uint8_t)*at >= 0x80)
        return -1;
    if (*at == '%' && source->end - at >= 3 && hexadecimal(at[1]) >= 0 && hexadecimal(at[2]) >= 0) {
        source->at += 3;
        return hexadecimal(at[1]) << 4 | hexadecimal(at[2]);
    }
    source->at += 1;
    return *at == '+' ? ' ' : (uint8_t)*at;
}

/* How many bytes follow the first one of a character of UTF-8, and between which the second one is; -1: none starts so.
 */
static int following(int first, int *low, int *high) {
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first < 0x80)
        return 0;
    if (first < 0xC2 || first > 0xF4)
        return -1;
    return first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
}

/* Copies one character; what is none, as far as it could have been one, becomes U+FFFD. */
static char *copy_character(byte_source *source, char *out) {
    char *begin = out;
    const int first = next_byte(source);
    int low, high, rest = following(first, &low, &high);
    *out++ = (char)first;
    while (rest > 0) {
        const byte_source before = *source;
        const int byte = next_byte(source);
        if (byte < low || byte > high) {
            *source = before;
            break;
        }
        *out++ = (char)byte;
        low = 0x80;
        high = 0xBF;
        rest--;
    }
    if (rest == 0)
        return out;
    memcpy(begin, "\xEF\xBF\xBD", 3);
    return begin + 3;
}

/* One byte becomes at most two, three at most three. */
static char *copy_part(const char *text, const char *end, char *out) {
    byte_source source = {text, end};
    while (source.at < end) {
        const uint8_t byte = (uint8_t)*source.at;
        if (byte < 0x80) {
            out = copy_character(&source, out);
            continue;
        }
        *out++ = (char)(0xC0 | byte >> 6);
        *out++ = (char)(0x80 | (byte & 63));
        source.at++;
    }
    return out;
}

static char *read_parameter(query_string *query, const char *text, const char *end, char *out) {
    const char *equals = memchr(text, '=', (size_t)(end - text));
    query_parameter *parameter = &query->parameters[query->count++];
    parameter->name = out;
    out = copy_part(text, equals != NULL ? equals : end, out);
    parameter->name_size = (size_t)(out - parameter->name);
    parameter->value = out;
    if (equals != NULL)
        out = copy_part(equals + 1, end, out);
    parameter->value_size = (size_t)(out - parameter->value);
    return out;
}

bool query_read(query_string *query, const char *text, size_t size) {
    *query = (query_string){0};
    if (size == 0)
        return true;
    const char *end = text + size;
    size_t count = 1;
    for (const char *at = text; at < end; at++)
        count += *at == '&';
    if (size > SIZE_MAX / 2 || count > SIZE_MAX / sizeof *query->parameters)
        return false;
    query->parameters = malloc(count * sizeof *query->parameters);
    query->text = malloc(2 * size);
    if (query->parameters == NULL || query->text == NULL)
        return false;
    char *out = query->text;
    while (text < end) {
        const char *separator = memchr(text, '&', (size_t)(end - text));
        const char *part_end = separator != NULL ? separator : end;
        if (part_end > text)
            out = read_parameter(query, text, part_end, out);
        text = separator != NULL ? separator + 1 : end;
    }
    return true;
}

void query_free(query_string *query) {
    free(query->parameters);
    free(query->text);
    *query = (query_string){0};
}

const query_parameter *query_find(const query_string *query, const char *name) {
    const size_t size = strlen(name);
    for (size_t i = query->count; i-- > 0;) {
        const query_parameter *parameter = &query->parameters[i];
        if (parameter->name_size == size && memcmp(parameter->name, name, size) == 0)
            return parameter;
    }
    return NULL;
}
