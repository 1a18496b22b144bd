/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, and the pieces of JSON that the commands write themselves. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool make_room(lns_cli_text *text, size_t more) {
    if (text->failed)
        return false;
    if (text->size + more + 1 <= text->room)
        return true;
    const size_t room = 2 * (text->size + more + 1);
    char *bytes = realloc(text->bytes, room);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

void lns_cli_text_append(lns_cli_text *text, const char *bytes, size_t size) {
    if (!make_room(text, size))
        return;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
}

void lns_cli_text_add(lns_cli_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0) {
        text->failed = true;
        return;
    }
    if (!make_room(text, (size_t)size))
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}

/* Bytes of the UTF-8 sequence at `bytes`; 0 when it is none: cut off, longer than needed, a surrogate, or beyond
 * U+10FFFF. The text ends with NUL, which no sequence continues with. */
static size_t utf8_size(const unsigned char *bytes) {
    const unsigned char first = bytes[0];
    if (first < 0x80)
        return 1;
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    const bool too_long = (first == 0xe0 && bytes[1] < 0xa0) || (first == 0xf0 && bytes[1] < 0x90);
    const bool surrogate = first == 0xed && bytes[1] > 0x9f;
    const bool too_high = first == 0xf4 && bytes[1] > 0x8f;
    return too_long || surrogate || too_high ? 0 : size;
}

void lns_cli_text_json(lns_cli_text *text, const char *value) {
    if (value == NULL) {
        lns_cli_text_add(text, "null");
        return;
    }
    lns_cli_text_add(text, "\"");
    for (const unsigned char *c = (const unsigned char *)value; *c != '\0';) {
        const size_t size = utf8_size(c);
        if (size == 0)
            lns_cli_text_add(text, "\xef\xbf\xbd");
        else if (*c == '"' || *c == '\\')
            lns_cli_text_add(text, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            lns_cli_text_add(text, "\\u%04x", *c);
        else
            lns_cli_text_append(text, (const char *)c, size);
        c += size == 0 ? 1 : size;
    }
    lns_cli_text_add(text, "\"");
}

void lns_cli_text_number(lns_cli_text *text, double value, int decimals) {
    char digits[400];
    snprintf(digits, sizeof digits, "%.*f", decimals, value);
    size_t size = strlen(digits);
    while (size > 2 && digits[size - 1] == '0' && digits[size - 2] != '.')
        size--;
    lns_cli_text_append(text, digits, size);
}

int lns_cli_text_print(lns_cli_text *text) {
    const int code = lns_cli_text_good(text) ? lns_cli_write_stdout(text->bytes, text->size) : lns_cli_out_of_memory();
    lns_cli_text_free(text);
    return code;
}

bool lns_cli_text_good(const lns_cli_text *text) {
    return !text->failed;
}

void lns_cli_text_free(lns_cli_text *text) {
    free(text->bytes);
    *text = (lns_cli_text){0};
}
