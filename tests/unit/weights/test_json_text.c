/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of JSON against Python's, with the cases of make_json_text.py. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../server/cases.h"
#include "base/memory.h"
#include "weights/json_text.h"

static void show_value(FILE *out, const lns_json_value *value) {
    const char *brackets = value->kind == LNS_JSON_OBJECT ? "{}" : "[]";
    switch (value->kind) {
    case LNS_JSON_STRING:
        assert_int_equal(value->text[value->size], '\0');
        fputc('"', out);
        fwrite(value->text, 1, value->size, out);
        fputc('"', out);
        break;
    case LNS_JSON_INTEGER:
        fprintf(out, "i%" PRId64, lns_json_integer(value));
        break;
    case LNS_JSON_ARRAY:
    case LNS_JSON_OBJECT:
        assert_int_equal(value->text[0], brackets[0]);
        assert_int_equal(value->text[value->size - 1], brackets[1]);
        fputc(brackets[0], out);
        for (const lns_json_value *inner = value + 1; inner < value + value->span; inner += inner->span) {
            assert_int_equal(inner->key != NULL, value->kind == LNS_JSON_OBJECT);
            if (inner->key != NULL)
                fprintf(out, "\"%s\":", inner->key);
            show_value(out, inner);
            fputc(',', out);
        }
        fputc(brackets[1], out);
        break;
    default:
        fprintf(out, "%s%.*s", value->kind == LNS_JSON_REAL ? "r" : "", (int)value->size, value->text);
    }
}

static void check_case(case_field fields[CASE_FIELDS]) {
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    lns_json_text json;
    const lns_status status =
        lns_json_text_parse(fields[0].text, fields[0].size, LNS_JSON_LAST_KEY_COUNTS, "case", &json);
    assert_true(status == LNS_OK || (status == LNS_ERROR_CORRUPT && json.values == NULL && json.strings == NULL));
    if (status == LNS_OK)
        show_value(out, json.values);
    else
        fputc('!', out);
    fclose(out);
    if (size != fields[1].size || memcmp(shown, fields[1].text, size) != 0)
        fail_msg("%.*s\n  gives %s (%s)\n  not   %.*s", (int)fields[0].size, fields[0].text, shown, lns_error_message(),
                 (int)fields[1].size, fields[1].text);
    free(shown);
    lns_json_text_free(&json);
    const int refused = lns_json_text_parse(fields[0].text, fields[0].size, LNS_JSON_UNIQUE_KEYS, "case", &json) != 0;
    if (refused != (status != LNS_OK || fields[2].text[0] == '1'))
        fail_msg("%.*s with unique keys: %d", (int)fields[0].size, fields[0].text, refused);
    lns_json_text_free(&json);
}

static void same_as_python(void **state) {
    (void)state;
    for_each_case(1900, 3, check_case);
}

/* Each message, and the byte it names. */
static void messages(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {" ", "'x': the JSON text ends too early"},
        {"{\"a\":\"\\u00", "'x': the JSON text ends too early"},
        {"{\"a\":\"\xe2\x82", "'x': the JSON text ends too early"},
        {" [", "'x': the JSON text is not an object: it starts with 0x5b, not '{'"},
        {"{\"a\":1,}", "'x': invalid JSON text at byte 7: 0x7d between the values"},
        {"{\"a\":[1 2]}", "'x': invalid JSON text at byte 8: 0x32 between the values"},
        {"{\"a\" 1}", "'x': invalid JSON text at byte 5: 0x31 between the values"},
        {"{\"a\":tru}", "'x': invalid JSON text at byte 5: 0x74 between the values"},
        {"{\"a\":\"b\n\"}", "'x': invalid JSON text at byte 7: 0x0a in a string"},
        {"{\"a\":\"\\x\"}", "'x': invalid JSON text at byte 7: 0x78 in an escape"},
        {"{\"a\":\"\\u00g0\"}", "'x': invalid JSON text at byte 10: 0x67 in an escape"},
        {"{\"a\":\"b\xff\"}", "'x': invalid JSON text at byte 7: 0xff is not UTF-8"},
        {"{\"a\":[[[[[[[[[[[[[[[0", "'x': invalid JSON text at byte 20: 0x30 is nested too deep"},
        {"{} ]", "'x': invalid JSON text at byte 3: 0x5d after the end of the object"},
        {"{\"a\":{\"b\":1,\"c\":2,\"b\":3}}", "'x': the JSON text has the same key twice"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lns_json_text json;
        assert_int_equal(lns_json_text_parse(texts[i][0], strlen(texts[i][0]), LNS_JSON_UNIQUE_KEYS, "x", &json),
                         LNS_ERROR_CORRUPT);
        assert_string_equal(lns_error_message(), texts[i][1]);
    }
}

static void members(void **state) {
    (void)state;
    static const char text[] = "{\"a\":[1,[2,3],{\"b\":4}],\"b\":5,\"a\":6,\"c\":{}}";
    lns_json_text json;
    assert_int_equal(lns_json_text_parse(text, sizeof text - 1, LNS_JSON_LAST_KEY_COUNTS, "x", &json), LNS_OK);
    assert_int_equal(lns_json_count(json.values), 4);
    assert_int_equal(lns_json_count(json.values + 1), 3);
    assert_int_equal(lns_json_integer(lns_json_find(json.values, "a")), 6);
    assert_int_equal(lns_json_integer(lns_json_find(json.values, "b")), 5);
    assert_null(lns_json_find(json.values, "d"));
    assert_null(lns_json_find(json.values + 1, "b"));
    assert_int_equal(lns_json_count(lns_json_find(json.values, "c")), 0);
    lns_json_text_free(&json);
    lns_json_text_free(&json);
}

/* More values than the first room for them, and keys enough that comparing each with each would take minutes. */
static void many_members(void **state) {
    (void)state;
    const int count = 100000;
    char *text = malloc((size_t)count * 12 + 2);
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += (size_t)sprintf(text + size, "%c\"%05d\":%d", i > 0 ? ',' : '{', i, i % 7);
    text[size++] = '}';
    lns_json_text json;
    assert_int_equal(lns_json_text_parse(text, size, LNS_JSON_UNIQUE_KEYS, "x", &json), LNS_OK);
    assert_int_equal(lns_json_count(json.values), count);
    assert_int_equal(lns_json_integer(lns_json_find(json.values, "99999")), 99999 % 7);
    lns_json_text_free(&json);
    memcpy(strstr(text, "\"99999\""), "\"54321\"", 7);
    assert_int_equal(lns_json_text_parse(text, size, LNS_JSON_UNIQUE_KEYS, "x", &json), LNS_ERROR_CORRUPT);
    free(text);
}

static void failing_allocations(void **state) {
    (void)state;
    char text[4096] = "{\"a\":[0";
    for (int i = 0; i < 1000; i++)
        strcat(text, ",0");
    strcat(text, "]}");
    long tries = 0;
    for (lns_status status = LNS_ERROR_OUT_OF_MEMORY; status != LNS_OK; tries++) {
        lns_json_text json;
        lns_alloc_fail_after(tries);
        status = lns_json_text_parse(text, strlen(text), LNS_JSON_UNIQUE_KEYS, "x", &json);
        lns_alloc_fail_after(-1);
        assert_true(status == LNS_OK || (status == LNS_ERROR_OUT_OF_MEMORY && json.values == NULL));
        lns_json_text_free(&json);
    }
    assert_int_equal(tries, 6); /* strings, three times values, keys, and one more that succeeds */
}

int main(int argument_count, char **arguments) {
    cases_path = argument_count > 1 ? arguments[1] : "json_text_cases.txt";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_python),
        cmocka_unit_test(messages),
        cmocka_unit_test(members),
        cmocka_unit_test(many_members),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests_name("json_text", tests, NULL, NULL);
}
