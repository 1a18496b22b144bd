/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of requests, and what is said when they are wrong, against FastAPI's answers of make_request_cases.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../src/server/error_body.h"
#include "../../../src/server/fields.h"
#include "cases.h"

/* Like the scripts write bytes. */
static void add_plain(text_buffer *text, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        char shown[4] = {bytes[i]};
        if (bytes[i] < ' ' || bytes[i] > '~' || bytes[i] == '%')
            snprintf(shown, sizeof shown, "%%%02X", (unsigned char)bytes[i]);
        text_buffer_add_text(text, shown);
    }
}

/* The threshold as Python shows it. */
static void add_real(text_buffer *text, double value) {
    char number[40];
    snprintf(number, sizeof number, "%.17g", value);
    if (strpbrk(number, ".e") == NULL)
        strcat(number, ".0");
    json_document document;
    assert_int_equal(json_document_read(&document, number, strlen(number)), JSON_READ);
    json_write_value(&document, document.nodes, text);
    json_document_free(&document);
}

static void add_fields(text_buffer *text, const predict_fields *fields, const char *kind) {
    char number[64];
    snprintf(number, sizeof number, "=%d ", fields->max_keypoints);
    text_buffer_add_text(text, number);
    add_real(text, fields->keypoint_threshold);
    snprintf(number, sizeof number, " %d %d ", fields->nms_radius, fields->return_descriptors);
    text_buffer_add_text(text, number);
    if (strcmp(kind, "body") == 0)
        add_plain(text, fields->image, fields->image_size);
    snprintf(number, sizeof number, "%dx%d", fields->height, fields->width);
    text_buffer_add_text(text, strcmp(kind, "plane") == 0 ? number : "");
}

static int answer(const char *kind, const char *content, size_t size, text_buffer *text) {
    json_document document = {0};
    query_string query = {0};
    predict_fields fields;
    char *copy = copy_bytes(content, size);
    int status;
    if (strcmp(kind, "body") == 0) {
        status = fields_from_body(&document, copy, size, true, &fields, text);
    } else {
        assert_true(query_read(&query, copy, size));
        status = fields_from_query(&query, strcmp(kind, "plane") == 0, &fields, text);
    }
    if (status == 0)
        add_fields(text, &fields, kind);
    query_free(&query);
    json_document_free(&document);
    free(copy);
    assert_false(text->failed);
    return status;
}

static void check_case(case_field fields[CASE_FIELDS]) {
    char kind[8];
    snprintf(kind, sizeof kind, "%.*s", (int)fields[0].size, fields[0].text);
    text_buffer text = {0};
    const int status = answer(kind, fields[1].text, fields[1].size, &text);
    const bool good = fields[2].text[0] == '=';
    /* Where the old server failed because it could not show the input, any list of errors that is JSON will do. */
    const bool shapeless = fields[2].size == 3 && memcmp(fields[2].text, "400", 3) == 0;
    bool same = status == (good ? 0 : 400);
    if (shapeless) {
        json_document document;
        same = same && json_document_read(&document, text.data, text.size) == JSON_READ &&
               json_find(&document, document.nodes, "detail")->kind == JSON_ARRAY;
        json_document_free(&document);
    } else {
        same = same && text.size == fields[2].size && memcmp(text.data, fields[2].text, text.size) == 0;
    }
    if (!same)
        fail_msg("%s %.*s\n  gives %d %.*s\n  not   %.*s", kind, (int)fields[1].size, fields[1].text, status,
                 (int)text.size, text.data, (int)fields[2].size, fields[2].text);
    text_buffer_free(&text);
}

static void test_cases(void **state) {
    (void)state;
    for_each_case(1000, 2, check_case);
}

static void check_answer(const char *kind, const char *content, const char *expected) {
    text_buffer text = {0};
    answer(kind, content, strlen(content), &text);
    text_buffer_add(&text, "", 1);
    assert_string_equal(text.data, expected);
    text_buffer_free(&text);
}

/* Where the answers of the old server could not be shown. */
static void test_what_json_cannot_show(void **state) {
    (void)state;
    check_answer(
        "body", "{\"image\":\"a\",\"max_keypoints\":NaN}",
        "{\"detail\":[{\"type\":\"finite_number\",\"loc\":[\"body\",\"max_keypoints\"],\"msg\":\"Input should be a "
        "finite number\",\"input\":\"NaN\"}]}");
    check_answer(
        "body", "{\"x\":[-Infinity,\"\\udc00\"]}",
        "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"image\"],\"msg\":\"Field required\",\"input\":{"
        "\"x\":[\"-Infinity\",\"\\udc00\"]}}]}");
}

/* A wrong body of 1 MB, as an array and as an object without an image: the answer is short, and JSON. */
static void test_large_input_is_not_shown(void **state) {
    (void)state;
    const size_t size = 1 << 20;
    static const char *const begins[] = {"[\"", "{\"x\":\""}, *const ends[] = {"\"]", "\"}"};
    char *content = malloc(size);
    assert_non_null(content);
    for (size_t i = 0; i < 2; i++) {
        memset(content, 'a', size);
        memcpy(content, begins[i], strlen(begins[i]));
        memcpy(content + size - 2, ends[i], 2);
        text_buffer text = {0};
        assert_int_equal(answer("body", content, size, &text), 400);
        assert_in_range(text.size, 100, 400);
        json_document document;
        assert_int_equal(json_document_read(&document, text.data, text.size), JSON_READ);
        const json_node *errors = json_find(&document, document.nodes, "detail");
        const json_node *input = json_find(&document, errors + 1, "input");
        assert_int_equal(input->kind, JSON_STRING);
        assert_memory_equal(input->text, "(about 1048", 11);
        json_document_free(&document);
        text_buffer_free(&text);
    }
    free(content);
}

static void test_other_content(void **state) {
    (void)state;
    char body[] = "{\"image\":\"a\"}";
    json_document document;
    predict_fields fields;
    text_buffer text = {0};
    assert_int_equal(fields_from_body(&document, body, sizeof body - 1, false, &fields, &text), 400);
    text_buffer_add(&text, "", 1);
    assert_string_equal(
        text.data, "{\"detail\":[{\"type\":\"model_attributes_type\",\"loc\":[\"body\"],\"msg\":\"Input should be a "
                   "valid dictionary or object to extract fields from\",\"input\":null,\"ctx\":{\"error\":\"the body "
                   "must be JSON, sent with Content-Type: application/json\"}}]}");
    text_buffer_free(&text);
    json_document_free(&document);
}

/* Integers in strings may have 4300 digits, without zeros at the front; pydantic 2.13 said so. */
static void test_long_integers(void **state) {
    (void)state;
    static const struct {
        size_t zeros, nines;
        const char *type;
    } cases[] = {
        {4400, 1, ""}, {0, 4300, "less_than_equal"}, {10, 4300, "less_than_equal"}, {0, 4301, "int_parsing_size"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char query_text[9000] = "max_keypoints=", type[64];
        const size_t name = strlen(query_text);
        memset(query_text + name, '0', cases[i].zeros);
        memset(query_text + name + cases[i].zeros, '9', cases[i].nines);
        text_buffer text = {0};
        const int status = answer("raw", query_text, name + cases[i].zeros + cases[i].nines, &text);
        assert_int_equal(status, cases[i].type[0] != '\0' ? 400 : 0);
        snprintf(type, sizeof type, "{\"detail\":[{\"type\":\"%s\"", cases[i].type);
        if (status == 400)
            assert_memory_equal(text.data, type, strlen(type));
        text_buffer_free(&text);
    }
}

static void test_content_types(void **state) {
    (void)state;
    static const char *const good[] = {"application/json",
                                       "APPLICATION/JSON",
                                       "application/json; charset=utf-8",
                                       "application/json;charset=latin-1",
                                       " application/json ;x",
                                       "application/vnd.x+json",
                                       "application/+json"};
    static const char *const bad[] = {NULL,
                                      "",
                                      "application",
                                      "text/json",
                                      "application/jsonx",
                                      "application/json/x",
                                      "application/octet-stream",
                                      "multipart/form-data; boundary=x",
                                      "json",
                                      "application/x-www-form-urlencoded",
                                      "application/json, text/plain",
                                      "application/ json"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(content_type_is_json(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(content_type_is_json(bad[i]));
}

static void test_error_texts(void **state) {
    (void)state;
    text_buffer text = {0};
    error_body_text(&text, "bad plane: %d bytes, \"%s\"", 5, "a\n\xC3\xA4");
    assert_int_equal(text.size, strlen("{\"detail\":\"bad plane: 5 bytes, \\\"a\\n\xC3\xA4\\\"\"}"));
    assert_memory_equal(text.data, "{\"detail\":\"bad plane: 5 bytes, \\\"a\\n\xC3\xA4\\\"\"}", text.size);
    text_buffer_free(&text);
    /* Nothing is cut within a character. */
    char longer[2048];
    for (size_t shift = 0; shift < 2; shift++) {
        memset(longer, 'a', shift);
        for (size_t i = shift; i < sizeof longer - 2; i += 2)
            memcpy(longer + i, "\xC3\xA4", 3);
        error_body_text(&text, "%s", longer);
        json_document document;
        assert_int_equal(json_document_read(&document, text.data, text.size), JSON_READ);
        assert_in_range(json_find(&document, document.nodes, "detail")->size, 1020, 1023);
        json_document_free(&document);
        text_buffer_free(&text);
    }
}

int main(int argument_count, char **arguments) {
    cases_path = argument_count > 1 ? arguments[1] : "request_cases.txt";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_what_json_cannot_show),
        cmocka_unit_test(test_other_content),
        cmocka_unit_test(test_long_integers),
        cmocka_unit_test(test_content_types),
        cmocka_unit_test(test_error_texts),
        cmocka_unit_test(test_large_input_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
