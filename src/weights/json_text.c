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

/* Members as written: in valid JSON every colon outside a string belongs to one. */
static size_t count_colons(const char *text, size_t size) {
    size_t colons = 0;
    int in_string = 0;
    for (size_t i = 0; i < size; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        else if (!in_string && text[i] == ':')
            colons++;
    }
    return colons;
}

static int only_white_space(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
            return 0;
    return 1;
}

static lns_status check(json_object *object, const char *text, size_t size, size_t end, lns_json_keys keys,
                        const char *label) {
    if (!only_white_space(text + end, size - end))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': text after the end of the JSON object at byte %zu", label, end);
    if (!json_object_is_type(object, json_type_object))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text is not an object", label);
    /* json-c keeps one of several equal keys without a word. */
    if (keys == LNS_JSON_UNIQUE_KEYS && count_colons(text, end) != count_members(object))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text has the same key twice", label);
    return LNS_OK;
}

lns_status lns_json_text_parse(const char *text, size_t size, lns_json_keys keys, const char *label,
                               json_object **object) {
    *object = NULL;
    if (size > INT_MAX)
        return lns_fail(LNS_ERROR_LIMIT, "'%s': %zu bytes of JSON text are too long", label, size);
    const char *zero = memchr(text, '\0', size);
    if (zero != NULL)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': a zero byte in the JSON text at byte %zu", label,
                        (size_t)(zero - text));
    json_tokener *tokener = json_tokener_new_ex(DEPTH_LIMIT);
    if (tokener == NULL)
        return lns_fail_memory(size);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    json_object *parsed = json_tokener_parse_ex(tokener, text, (int)size);
    const enum json_tokener_error error = json_tokener_get_error(tokener);
    const size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    lns_status status;
    if (error == json_tokener_continue)
        status = lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text ends too early", label);
    else if (error != json_tokener_success)
        status = lns_fail(LNS_ERROR_CORRUPT, "'%s': invalid JSON text at byte %zu: %s", label, end,
                          json_tokener_error_desc(error));
    else
        status = check(parsed, text, size, end, keys, label);
    if (status != LNS_OK) {
        json_object_put(parsed);
        return status;
    }
    *object = parsed;
    return LNS_OK;
}
