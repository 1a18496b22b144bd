/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "weights/json_string.h"

#define DEPTH_LIMIT 16
#define FIRST_CAPACITY 256

typedef struct reader {
    lns_json_text *json;
    const char *label;
    const char *begin;
    const char *at;
    const char *end;
    char *strings;            /* where the next string goes */
    size_t open[DEPTH_LIMIT]; /* arrays and objects that are not closed yet */
    size_t depth;
} reader;

static lns_status fail(const reader *r, const char *wrong) {
    if (r->at == r->end)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text ends too early", r->label);
    return lns_fail(LNS_ERROR_CORRUPT, "'%s': invalid JSON text at byte %zu: 0x%02x %s", r->label,
                    (size_t)(r->at - r->begin), (unsigned char)*r->at, wrong);
}

static lns_status fail_between(const reader *r) {
    return fail(r, "between the values");
}

static void skip_white_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\n'))
        r->at++;
}

/* Skips white space, and then the character if it is the next one. */
static int take(reader *r, char c) {
    skip_white_space(r);
    if (r->at == r->end || *r->at != c)
        return 0;
    r->at++;
    return 1;
}

static size_t count_digits(const char *text, size_t size) {
    size_t count = 0;
    while (count < size && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

/* Length of the number at the start of a text; 0 when JSON does not write numbers like this. */
static size_t measure_number(const char *text, size_t size, lns_json_kind *kind) {
    size_t at = size > 0 && text[0] == '-';
    size_t digits = count_digits(text + at, size - at);
    if (digits == 0 || (digits > 1 && text[at] == '0'))
        return 0;
    at += digits;
    *kind = LNS_JSON_INTEGER;
    if (at < size && text[at] == '.') {
        digits = count_digits(text + at + 1, size - at - 1);
        if (digits == 0)
            return 0;
        at += 1 + digits;
        *kind = LNS_JSON_REAL;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < size && (text[at] == '+' || text[at] == '-');
        digits = count_digits(text + at, size - at);
        if (digits == 0)
            return 0;
        at += digits;
        *kind = LNS_JSON_REAL;
    }
    return at;
}

/* Length of the word at the start of a text; 0 when it is none of JSON's three. */
static size_t measure_word(const char *text, size_t size, lns_json_kind *kind) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        *kind = *words[i] == 'n' ? LNS_JSON_NULL : LNS_JSON_BOOLEAN;
        if (length <= size && memcmp(text, words[i], length) == 0)
            return length;
    }
    return 0;
}

static lns_status read_number_or_word(reader *r, lns_json_value *value) {
    const size_t rest = (size_t)(r->end - r->at);
    value->text = r->at;
    value->size = measure_number(r->at, rest, &value->kind);
    if (value->size == 0)
        value->size = measure_word(r->at, rest, &value->kind);
    if (value->size == 0)
        return fail_between(r);
    r->at += value->size;
    return LNS_OK;
}

static lns_status read_string(reader *r, const char **text, size_t *size) {
    *text = r->strings;
    const char *wrong = lns_json_string_read(&r->at, r->end, &r->strings);
    if (wrong != NULL)
        return fail(r, wrong);
    *size = (size_t)(r->strings - *text) - 1;
    return LNS_OK;
}

/* Reads a key and its colon. */
static lns_status read_key(reader *r, const char **key) {
    skip_white_space(r);
    if (r->at == r->end || *r->at != '"')
        return fail_between(r);
    size_t size;
    const lns_status status = read_string(r, key, &size);
    if (status != LNS_OK)
        return status;
    return take(r, ':') ? LNS_OK : fail_between(r);
}

/* The new value stays in place until the next one is added. NULL: no memory, and the error text is set. */
static lns_json_value *add_value(lns_json_text *json, const char *key) {
    if (json->count == json->capacity) {
        const size_t capacity = json->capacity > 0 ? 2 * json->capacity : FIRST_CAPACITY;
        lns_json_value *values = lns_realloc(json->values, capacity * sizeof *values);
        if (values == NULL) {
            lns_fail_memory(capacity * sizeof *values);
            return NULL;
        }
        json->values = values;
        json->capacity = capacity;
    }
    lns_json_value *value = &json->values[json->count++];
    *value = (lns_json_value){.key = key, .span = 1};
    return value;
}

/* Reads the value that comes next; of an array or object only the bracket. */
static lns_status begin_value(reader *r, const char *key) {
    skip_white_space(r);
    if (r->at == r->end)
        return fail_between(r);
    if (r->depth == DEPTH_LIMIT)
        return fail(r, "is nested too deep");
    lns_json_value *value = add_value(r->json, key);
    if (value == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    if (*r->at == '"') {
        value->kind = LNS_JSON_STRING;
        return read_string(r, &value->text, &value->size);
    }
    if (*r->at != '[' && *r->at != '{')
        return read_number_or_word(r, value);
    value->kind = *r->at == '{' ? LNS_JSON_OBJECT : LNS_JSON_ARRAY;
    value->text = r->at++;
    r->open[r->depth++] = r->json->count - 1;
    return LNS_OK;
}

/* Reads on in the innermost array or object: another value, or its end. */
static lns_status read_on(reader *r) {
    lns_json_value *open = &r->json->values[r->open[r->depth - 1]];
    const size_t span = (size_t)(r->json->values + r->json->count - open);
    if (take(r, open->kind == LNS_JSON_OBJECT ? '}' : ']')) {
        open->span = span;
        open->size = (size_t)(r->at - open->text);
        r->depth--;
        return LNS_OK;
    }
    if (span > 1 && !take(r, ','))
        return fail_between(r);
    const char *key = NULL;
    const lns_status status = open->kind == LNS_JSON_OBJECT ? read_key(r, &key) : LNS_OK;
    return status == LNS_OK ? begin_value(r, key) : status;
}

static lns_status read_object(reader *r) {
    skip_white_space(r);
    if (r->at < r->end && *r->at != '{')
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text is not an object: it starts with 0x%02x, not '{'",
                        r->label, (unsigned char)*r->at);
    lns_status status = begin_value(r, NULL);
    while (status == LNS_OK && r->depth > 0)
        status = read_on(r);
    if (status != LNS_OK)
        return status;
    skip_white_space(r);
    return r->at == r->end ? LNS_OK : fail(r, "after the end of the object");
}

static int compare_texts(const void *first, const void *second) {
    return strcmp(*(const char *const *)first, *(const char *const *)second);
}

/* Collects the keys of an object in `keys` and sorts them. */
static int has_same_key_twice(const lns_json_value *object, const char **keys) {
    size_t count = 0;
    for (const lns_json_value *member = object + 1; member < object + object->span; member += member->span)
        keys[count++] = member->key;
    qsort(keys, count, sizeof *keys, compare_texts);
    for (size_t i = 1; i < count; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            return 1;
    return 0;
}

static lns_status check_unique_keys(const lns_json_text *json, const char *label) {
    const char **keys = lns_alloc_array(json->count, sizeof *keys);
    if (keys == NULL)
        return lns_fail_memory(json->count * sizeof *keys);
    int twice = 0;
    for (size_t i = 0; !twice && i < json->count; i++)
        twice = json->values[i].kind == LNS_JSON_OBJECT && has_same_key_twice(&json->values[i], keys);
    lns_free(keys);
    return twice ? lns_fail(LNS_ERROR_CORRUPT, "'%s': the JSON text has the same key twice", label) : LNS_OK;
}

lns_status lns_json_text_parse(const char *text, size_t size, lns_json_keys keys, const char *label,
                               lns_json_text *json) {
    *json = (lns_json_text){.strings = lns_alloc(size)}; /* with its quotes, a string takes more room in the text */
    if (json->strings == NULL)
        return lns_fail_memory(size);
    reader r = {.json = json, .label = label, .begin = text, .at = text, .end = text + size, .strings = json->strings};
    lns_status status = read_object(&r);
    if (status == LNS_OK && keys == LNS_JSON_UNIQUE_KEYS)
        status = check_unique_keys(json, label);
    if (status != LNS_OK)
        lns_json_text_free(json);
    return status;
}

void lns_json_text_free(lns_json_text *json) {
    lns_free(json->values);
    lns_free(json->strings);
    *json = (lns_json_text){0};
}

const lns_json_value *lns_json_find(const lns_json_value *object, const char *key) {
    const lns_json_value *found = NULL;
    if (object->kind == LNS_JSON_OBJECT)
        for (const lns_json_value *member = object + 1; member < object + object->span; member += member->span)
            if (strcmp(member->key, key) == 0)
                found = member;
    return found;
}

size_t lns_json_count(const lns_json_value *value) {
    size_t count = 0;
    for (const lns_json_value *inner = value + 1; inner < value + value->span; inner += inner->span)
        count++;
    return count;
}

int64_t lns_json_integer(const lns_json_value *value) {
    return strtoll(value->text, NULL, 10); /* stops at the bracket or comma that follows at the latest */
}
