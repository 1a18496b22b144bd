/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/json_text.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"

#define DEPTH_LIMIT 16

/* Members of all objects in a tree that the tokener accepted, so its depth is limited. */
static size_t count_members(json_object *value) {
    size_t members = 0;
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach(value, key, member) {
            (void)key;
            members += 1 + count_members(member);
        }
    } else if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            members += count_members(json_object_array_get_idx(value, i));
    }
    return members;
}

static size_t count_digits(const char *text, size_t size) {
    size_t count = 0;
    while (count < size && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

/* Length of the number at the start of a text; 0 when JSON does not write numbers like this. */
static size_t measure_number(const char *text, size_t size) {
    size_t at = size > 0 && text[0] == '-';
    size_t digits = count_digits(text + at, size - at);
    if (digits == 0 || (digits > 1 && text[at] == '0'))
        return 0;
    at += digits;
    if (at < size && text[at] == '.') {
        digits = count_digits(text + at + 1, size - at - 1);
        if (digits == 0)
            return 0;
        at += 1 + digits;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < size && (text[at] == '+' || text[at] == '-');
        digits = count_digits(text + at, size - at);
        if (digits == 0)
            return 0;
        at += digits;
    }
    return at;
}

/* Length of the word at the start of a text; 0 when it is none of JSON's three. */
static size_t measure_word(const char *text, size_t size) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        if (length <= size && memcmp(text, words[i], length) == 0)
            return length;
    }
    return 0;
}

/* Length of the piece at the start of a text: a character in or outside a string, an escape, a number, a word; 0 when
 * JSON has no use for it there. */
static size_t measure_piece(const char *text, size_t size, int in_string) {
    const char c = text[0];
    if (in_string)
        return (unsigned char)c < 0x20 ? 0 : c == '\\' && size > 1 ? 2 : 1;
    if (c == '-' || (c >= '0' && c <= '9'))
        return measure_number(text, size);
    if (c != '\0' && strchr(" \t\r\n{}[]:,\"", c) != NULL)
        return 1;
    return measure_word(text, size);
}

/* json-c takes some things that are not JSON, such as names in single quotes, numbers like 01 or 1. (with a point at the
 * end), NaN, and a comma before a closing bracket. Refuses them; the strict mode of json-c would not do: it lets some of
 * them pass, and from 0.18 on it refuses text beyond ASCII. Counts the colons outside strings: in valid JSON each belongs
 * to one member. */
static lns_status scan(const char *text, size_t size, const char *label, size_t *colons) {
    int in_string = 0;
    char last = '\0'; /* character before this one, white space and strings left out */
    *colons = 0;
    for (size_t at = 0; at < size;) {
        const size_t length = measure_piece(text + at, size - at, in_string);
        if (length == 0 || (!in_string && last == ',' && (text[at] == '}' || text[at] == ']')))
            return lns_fail(LNS_ERROR_CORRUPT, "'%s': invalid JSON text at byte %zu: 0x%02x %s", label, at,
                            (unsigned char)text[at], in_string ? "in a string" : "between the values");
        if (text[at] == '"')
            in_string = !in_string;
        else if (!in_string && text[at] == ':')
            ++*colons;
        if (in_string || strchr(" \t\r\n", text[at]) == NULL)
            last = text[at];
        at += length;
    }
    return LNS_OK;
}

/* Index of the first byte that is no white space; `size` when there is none. */
static size_t skip_white_space(const char *text, size_t size, size_t start) {
    while (start < size && text[start] != '\0' && strchr(" \t\r\n", text[start]) != NULL)
        start++;
    return start;
}

static lns_status parse(const char *text, size_t size, const char *label, json_object **object) {
    json_tokener *tokener = json_tokener_new_ex(DEPTH_LIMIT);
    if (tokener == NULL)
        return lns_fail_memory(size);
    json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
    *object = json_tokener_parse_ex(tokener, text, (int)size);
    const enum json_tokener_error error = json_tokener_get_error(tokener);
    const size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    /* The text begins with a brace, so it is not null: json-c before 0.17 has no other way to say this. */
    if (error == json_tokener_success && *object == NULL)
        return lns_fail_memory(size);
    if (error == json_tokener_continue)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text ends too early", label);
    if (error != json_tokener_success)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': invalid JSON text at byte %zu: %s", label, end,
                        json_tokener_error_desc(error));
    if (skip_white_space(text, size, end) != size)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': text after the end of the JSON object at byte %zu", label, end);
    return LNS_OK;
}

lns_status lns_json_text_parse(const char *text, size_t size, lns_json_keys keys, const char *label,
                               json_object **object) {
    *object = NULL;
    if (size > INT_MAX)
        return lns_fail(LNS_ERROR_LIMIT, "'%s': %zu bytes of JSON text are too long", label, size);
    const size_t start = skip_white_space(text, size, 0);
    if (start < size && text[start] != '{')
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text is not an object: it starts with 0x%02x, not '{'",
                        label, (unsigned char)text[start]);
    size_t colons;
    lns_status status = scan(text, size, label, &colons);
    if (status == LNS_OK)
        status = parse(text, size, label, object);
    /* json-c keeps the last of several equal keys without a word. */
    if (status == LNS_OK && keys == LNS_JSON_UNIQUE_KEYS && colons != count_members(*object))
        status = lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text has the same key twice", label);
    if (status != LNS_OK) {
        json_object_put(*object);
        *object = NULL;
    }
    return status;
}
