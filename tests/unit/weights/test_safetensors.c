/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "weights/safetensors.h"

/* A file of its own size on the heap, so that a sanitizer sees every byte read too far. */
typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static bytes make(uint64_t length, const char *header, size_t header_size, size_t data_size) {
    bytes file = {NULL, 8 + header_size + data_size};
    file.data = malloc(file.size);
    for (int i = 0; i < 8; i++)
        file.data[i] = (unsigned char)(length >> (8 * i));
    memcpy(file.data + 8, header, header_size);
    for (size_t i = 0; i < data_size; i++)
        file.data[8 + header_size + i] = (unsigned char)i;
    return file;
}

static lns_status parse(bytes file, lns_safetensors **parsed) {
    return lns_safetensors_parse(file.data, file.size, "x.safetensors", parsed);
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define B "\"b\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[8,12]}"
#define TENSOR(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

typedef struct header_case {
    const char *header;
    size_t data_size;
    const char *message; /* part of the error; NULL: the file is good */
} header_case;

static const header_case cases[] = {
    /* good */
    {"{}", 0, NULL},
    {"{}   ", 0, NULL},
    {"{" A "}", 8, NULL},
    {"{" A "," B "}", 12, NULL},
    {"{" B "," A "}", 12, NULL},
    {"{" A "}  \n\t ", 8, NULL},
    {"{\"__metadata__\":{}," A "}", 8, NULL},
    {"{\"__metadata__\":{\"k\":\"a:b \\\" {,\"}," A "}", 8, NULL},
    {"{\"a\\\":\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":{\"x\":[null,1.5,true]}}}", 8, NULL},
    {TENSOR("\"F32\"", "[]", "[0,4]"), 4, NULL},
    {TENSOR("\"F32\"", "[0]", "[0,0]"), 0, NULL},
    {TENSOR("\"F32\"", "[0,9223372036854775807]", "[0,0]"), 0, NULL},
    {TENSOR("\"F16\"", "[3]", "[0,6]"), 6, NULL},
    {TENSOR("\"BF16\"", "[1,1,1,1,1,1,1,3]", "[0,6]"), 6, NULL},
    {TENSOR("\"I64\"", "[1]", "[0,8]"), 8, NULL},
    {TENSOR("\"F4\"", "[4]", "[0,2]"), 2, NULL},
    {"{\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}," A "," B "}", 12, NULL},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, NULL},
    /* not JSON, or not quite */
    {"{ ", 0, "ends too early"},
    {"{\"a\"", 0, "ends too early"},
    {"{" A, 8, "ends too early"},
    {"{" A ",}", 8, "invalid JSON"},
    {"{" A "}x", 8, "JSON"},
    {"{" A "}{}", 8, "JSON"},
    {"{'a':1}", 0, "invalid JSON"},
    {"{\"a\":{'dtype':\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "invalid JSON"},
    {"{\"a\nb\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "in a string"},
    {TENSOR("\"F32\"", "[02]", "[0,8]"), 8, "invalid JSON"},
    {TENSOR("\"F32\"", "[2.]", "[0,8]"), 8, "invalid JSON"},
    {TENSOR("\"F32\"", "[+2]", "[0,8]"), 8, "invalid JSON"},
    {TENSOR("\"F32\"", "[-]", "[0,8]"), 8, "invalid JSON"},
    {TENSOR("\"F32\"", "[2e]", "[0,8]"), 8, "invalid JSON"},
    {"{a:1}", 0, "invalid JSON"},
    {"{/* */}", 0, "invalid JSON"},
    {"{\"a\":\"\xff\"}", 0, "invalid JSON"},
    {"{\"\xc3\":1}", 0, "invalid JSON"},
    {"{\"a\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}", 0, "invalid JSON"},
    /* the same name twice */
    {"{" A "," A "}", 8, "same key twice"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}," A "}", 8, "same key twice"},
    {"{\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}," A "}", 8, "same key twice"},
    {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}," A "}", 8, "same key twice"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "same key twice"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "same key twice"},
    /* metadata */
    {"{\"__metadata__\":1}", 0, "__metadata__"},
    {"{\"__metadata__\":null}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "'k'"},
    {"{\"__metadata__\":{\"k\":null}}", 0, "'k'"},
    /* entries */
    {"{\"a\":1}", 0, "not a JSON object"},
    {"{\"a\":null}", 0, "not a JSON object"},
    {"{\"a\":[]}", 0, "not a JSON object"},
    {"{\"a\":{}}", 0, "dtype"},
    {TENSOR("1", "[2]", "[0,8]"), 8, "dtype"},
    {TENSOR("null", "[2]", "[0,8]"), 8, "dtype"},
    {TENSOR("\"f32\"", "[2]", "[0,8]"), 8, "unknown type 'f32'"},
    {TENSOR("\"\"", "[2]", "[0,8]"), 8, "unknown type"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets"},
    {TENSOR("\"F32\"", "2", "[0,8]"), 8, "shape"},
    {TENSOR("\"F32\"", "{}", "[0,8]"), 8, "shape"},
    {TENSOR("\"F32\"", "[\"2\"]", "[0,8]"), 8, "\"shape\"[0]"},
    {TENSOR("\"F32\"", "[2.0]", "[0,8]"), 8, "\"shape\"[0]"},
    {TENSOR("\"F32\"", "[2e0]", "[0,8]"), 8, "\"shape\"[0]"},
    {TENSOR("\"F32\"", "[null]", "[0,8]"), 8, "\"shape\"[0]"},
    {TENSOR("\"F32\"", "[true,2]", "[0,8]"), 8, "\"shape\"[0]"},
    {TENSOR("\"F32\"", "[1,-2]", "[0,8]"), 8, "\"shape\"[1]"},
    {TENSOR("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, "9 dimensions"},
    {TENSOR("\"F32\"", "[4294967296,4294967296]", "[0,8]"), 8, "overflows"},
    {TENSOR("\"F32\"", "[4611686018427387904]", "[0,8]"), 8, "overflows"},
    {TENSOR("\"F32\"", "[9223372036854775808]", "[0,8]"), 8, "overflows"},
    {TENSOR("\"F32\"", "[3]", "[0,8]"), 8, "shape and type"},
    {TENSOR("\"F32\"", "[]", "[0,8]"), 8, "shape and type"},
    {TENSOR("\"F16\"", "[2]", "[0,8]"), 8, "shape and type"},
    {TENSOR("\"F4\"", "[3]", "[0,2]"), 2, "shape and type"},
    /* ranges */
    {TENSOR("\"F32\"", "[2]", "8"), 8, "data_offsets"},
    {TENSOR("\"F32\"", "[2]", "[]"), 8, "0 numbers"},
    {TENSOR("\"F32\"", "[2]", "[0]"), 8, "1 numbers"},
    {TENSOR("\"F32\"", "[2]", "[0,8,8]"), 8, "3 numbers"},
    {TENSOR("\"F32\"", "[2]", "[0,\"8\"]"), 8, "\"data_offsets\"[1]"},
    {TENSOR("\"F32\"", "[2]", "[-8,0]"), 8, "\"data_offsets\"[0]"},
    {TENSOR("\"F32\"", "[2]", "[0,8]"), 7, "not inside"},
    {TENSOR("\"F32\"", "[2]", "[8,16]"), 8, "not inside"},
    {TENSOR("\"F32\"", "[2]", "[8,0]"), 8, "not inside"},
    {TENSOR("\"F32\"", "[2]", "[0,9223372036854775807]"), 8, "not inside"},
    {TENSOR("\"F32\"", "[2]", "[18446744073709551608,18446744073709551616]"), 8, "not inside"},
    {TENSOR("\"F32\"", "[2]", "[0,99999999999999999999999999]"), 8, ""},
    /* cover */
    {"{}", 1, "1 bytes of data"},
    {"{" A "}", 9, "9 bytes of data"},
    {"{" B "}", 12, "hole"},
    {TENSOR("\"F32\"", "[2]", "[1,9]"), 9, "hole"},
    {"{" A ",\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8, "overlapping"},
    {"{" A ",\"c\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "overlapping"},
    {"{" A ",\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[9,12]}}", 12, "hole"},
    {"{" A ",\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}", 8, "overlapping"},
};

static void headers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const header_case *c = &cases[i];
        bytes file = make(strlen(c->header), c->header, strlen(c->header), c->data_size);
        lns_safetensors *parsed;
        const lns_status status = parse(file, &parsed);
        const int good = c->message == NULL ? status == LNS_OK && parsed != NULL
                                            : (status == LNS_ERROR_CORRUPT || status == LNS_ERROR_LIMIT) &&
                                                  parsed == NULL && strstr(lns_error_message(), c->message) != NULL &&
                                                  strstr(lns_error_message(), "x.safetensors") != NULL;
        if (!good)
            fail_msg("case %zu: %s: status %d: %s", i, c->header, status, lns_error_message());
        lns_safetensors_close(&parsed);
        free(file.data);
    }
}

static void check_failure(bytes file, lns_status expected, const char *message) {
    lns_safetensors *parsed;
    assert_int_equal(parse(file, &parsed), expected);
    assert_null(parsed);
    assert_non_null(strstr(lns_error_message(), message));
    free(file.data);
}

static void header_lengths(void **state) {
    (void)state;
    static const char header[] = "{" A "}";
    const size_t size = sizeof header - 1;
    check_failure(make(0, "", 0, 0), LNS_ERROR_CORRUPT, "8 bytes: too short");
    check_failure(make(2, "{", 1, 0), LNS_ERROR_CORRUPT, "9 bytes: too short");
    check_failure(make(size + 9, header, size, 8), LNS_ERROR_CORRUPT, "cut off");
    check_failure(make(size - 1, header, size, 8), LNS_ERROR_CORRUPT, "ends too early");
    check_failure(make(0, header, size, 8), LNS_ERROR_CORRUPT, "JSON");
    check_failure(make(UINT64_MAX, header, size, 8), LNS_ERROR_LIMIT, "18446744073709551615");
    check_failure(make(UINT64_MAX - 7, header, size, 8), LNS_ERROR_LIMIT, "limit");
    check_failure(make((1u << 20) + 1, header, size, 8), LNS_ERROR_LIMIT, "limit of 1048576");
    check_failure(make(size, "PK\3\4xxxxxxxx", 12, 8), LNS_ERROR_FORMAT, "not a safetensors file");
    check_failure(make(size, " {}", 3, 0), LNS_ERROR_FORMAT, "0x20");
    check_failure(make(3, "{}\0", 3, 0), LNS_ERROR_CORRUPT, "invalid JSON text at byte 2: 0x00");
}

static void every_truncation_fails(void **state) {
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\"}," A "," B "}";
    bytes file = make(sizeof header - 1, header, sizeof header - 1, 12);
    for (size_t size = 0; size < file.size; size++) {
        unsigned char *part = malloc(size > 0 ? size : 1);
        memcpy(part, file.data, size);
        lns_safetensors *parsed;
        assert_int_not_equal(lns_safetensors_parse(part, size, "x", &parsed), LNS_OK);
        assert_null(parsed);
        free(part);
    }
    free(file.data);
}

static void too_many_tensors(void **state) {
    (void)state;
    for (int count = 4096; count <= 4097; count++) {
        char *header = malloc((size_t)count * 64);
        size_t used = 0;
        for (int i = 0; i < count; i++)
            used += (size_t)sprintf(header + used, "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                                    i > 0 ? "," : "{", i);
        header[used++] = '}';
        bytes file = make(used, header, used, 0);
        lns_safetensors *parsed;
        assert_int_equal(parse(file, &parsed), count == 4096 ? LNS_OK : LNS_ERROR_LIMIT);
        lns_safetensors_close(&parsed);
        free(file.data);
        free(header);
    }
}

static void tensors_and_metadata(void **state) {
    (void)state;
    static const char header[] = "{" B ",\"__metadata__\":{\"license\":\"MIT\",\"x\":\"\"}," A "}";
    bytes file = make(sizeof header - 1, header, sizeof header - 1, 12);
    lns_safetensors *parsed;
    assert_int_equal(parse(file, &parsed), LNS_OK);
    const lns_tensor *a = lns_safetensors_find(parsed, "a");
    const lns_tensor *b = lns_safetensors_find(parsed, "b");
    assert_string_equal(a->name, "a");
    assert_int_equal(a->dtype, LNS_DTYPE_F32);
    assert_int_equal(a->dimensions, 1);
    assert_int_equal(a->shape[0], 2);
    assert_int_equal(a->size, 8);
    assert_int_equal(*(const unsigned char *)a->data, 0);
    assert_int_equal(b->dtype, LNS_DTYPE_OTHER);
    assert_int_equal(b->dimensions, 2);
    assert_int_equal(*(const unsigned char *)b->data, 8);
    assert_null(lns_safetensors_find(parsed, "c"));
    assert_null(lns_safetensors_find(parsed, "__metadata__"));
    assert_string_equal(lns_safetensors_metadata(parsed, "license"), "MIT");
    assert_string_equal(lns_safetensors_metadata(parsed, "x"), "");
    assert_null(lns_safetensors_metadata(parsed, "y"));
    lns_safetensors_close(&parsed);
    assert_null(parsed);
    lns_safetensors_close(&parsed);
    free(file.data);
}

static void failing_allocations(void **state) {
    (void)state;
    static const char header[] = "{" A "," B "}";
    bytes file = make(sizeof header - 1, header, sizeof header - 1, 12);
    lns_status status = LNS_ERROR_OUT_OF_MEMORY;
    int tries = 0;
    for (; status != LNS_OK; tries++) {
        lns_safetensors *parsed;
        lns_alloc_fail_after(tries);
        status = parse(file, &parsed);
        lns_alloc_fail_after(-1);
        assert_true(status == LNS_OK || status == LNS_ERROR_OUT_OF_MEMORY);
        lns_safetensors_close(&parsed);
    }
    assert_true(tries >= 3);
    free(file.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(header_lengths),
        cmocka_unit_test(every_truncation_fails),
        cmocka_unit_test(too_many_tensors),
        cmocka_unit_test(tensors_and_metadata),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
