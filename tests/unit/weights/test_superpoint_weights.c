/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "weights/superpoint_weights.h"

/* The tensors as the model card of SuperPoint lists them. */
static const struct {
    const char *name;
    int outputs, inputs, kernel;
} layers[] = {
    {"encoder.conv_blocks.0.conv_a", 64, 1, 3},
    {"encoder.conv_blocks.0.conv_b", 64, 64, 3},
    {"encoder.conv_blocks.1.conv_a", 64, 64, 3},
    {"encoder.conv_blocks.1.conv_b", 64, 64, 3},
    {"encoder.conv_blocks.2.conv_a", 128, 64, 3},
    {"encoder.conv_blocks.2.conv_b", 128, 128, 3},
    {"encoder.conv_blocks.3.conv_a", 128, 128, 3},
    {"encoder.conv_blocks.3.conv_b", 128, 128, 3},
    {"keypoint_decoder.conv_score_a", 256, 128, 3},
    {"keypoint_decoder.conv_score_b", 65, 256, 1},
    {"descriptor_decoder.conv_descriptor_a", 256, 128, 3},
    {"descriptor_decoder.conv_descriptor_b", 256, 256, 1},
};
#define LAYERS ((int)(sizeof layers / sizeof *layers))

/* How the file differs from a good one. */
typedef struct recipe {
    const char *dtype;     /* of all tensors; NULL: F32 */
    const char *odd;       /* name of the tensor that is different */
    const char *odd_name;  /* its name in the file */
    const char *odd_shape; /* its shape in the file, with as many values */
    const char *odd_dtype; /* its type in the file */
    uint32_t odd_value;    /* bits of its last value; 0: as usual */
    const char *metadata;  /* JSON; NULL: none */
    const char *extra;     /* more entries for the header, of no data */
    size_t padding;        /* blanks behind the header */
} recipe;

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

/* Multiples of 1/32 that every type holds exactly, different for each tensor. */
static float value_at(int tensor, size_t i) {
    return (float)((int)((i * 7 + (size_t)tensor * 11) % 61) - 30) / 32.0f;
}

/* The bits of such a value in a type. */
static uint32_t encode(float value, const char *dtype) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (strcmp(dtype, "F32") == 0 || value == 0)
        return strcmp(dtype, "F32") == 0 ? bits : bits >> 16;
    if (strcmp(dtype, "BF16") == 0)
        return bits >> 16;
    return (bits >> 16 & 0x8000u) | ((bits >> 23 & 0xffu) - 112) << 10 | (bits >> 13 & 0x3ffu);
}

static size_t width_of(const char *dtype) {
    return strcmp(dtype, "F64") == 0 ? 8 : strcmp(dtype, "F32") == 0 || strcmp(dtype, "I32") == 0 ? 4 : 2;
}

static void put(unsigned char *target, uint32_t bits, size_t width) {
    for (size_t i = 0; i < width; i++)
        target[i] = (unsigned char)(i < 4 ? bits >> (8 * i) : 0);
}

/* Adds one tensor to header and data. */
static void add(const recipe *r, int index, const char *name, const char *shape, size_t count, char *header,
                unsigned char *data, size_t *end) {
    const int odd = r->odd != NULL && strcmp(name, r->odd) == 0;
    const char *dtype = odd && r->odd_dtype != NULL ? r->odd_dtype : r->dtype != NULL ? r->dtype : "F32";
    const size_t width = width_of(dtype);
    for (size_t i = 0; i < count; i++)
        put(data + *end + i * width, encode(value_at(index, i), width == 2 ? dtype : "F32"), width);
    if (odd && r->odd_value != 0)
        put(data + *end + (count - 1) * width, r->odd_value, width);
    sprintf(header + strlen(header), "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
            strlen(header) > 1 ? "," : "", odd && r->odd_name != NULL ? r->odd_name : name, dtype,
            odd && r->odd_shape != NULL ? r->odd_shape : shape, *end, *end + count * width);
    *end += count * width;
}

static bytes make(const recipe *r) {
    char *header = calloc(1, 65536);
    unsigned char *data = malloc(12 << 20);
    size_t end = 0;
    strcpy(header, "{");
    if (r->metadata != NULL)
        sprintf(header, "{\"__metadata__\":%s", r->metadata);
    for (int i = 0; i < LAYERS; i++) {
        char name[100];
        char shape[100];
        const size_t area = (size_t)(layers[i].kernel * layers[i].kernel);
        sprintf(name, "%s.weight", layers[i].name);
        sprintf(shape, "[%d,%d,%d,%d]", layers[i].outputs, layers[i].inputs, layers[i].kernel, layers[i].kernel);
        add(r, 2 * i, name, shape, (size_t)layers[i].outputs * (size_t)layers[i].inputs * area, header, data, &end);
        sprintf(name, "%s.bias", layers[i].name);
        sprintf(shape, "[%d]", layers[i].outputs);
        add(r, 2 * i + 1, name, shape, (size_t)layers[i].outputs, header, data, &end);
    }
    if (r->extra != NULL)
        sprintf(header + strlen(header), ",%s", r->extra);
    size_t length = strlen(header);
    header[length++] = '}';
    memset(header + length, ' ', r->padding);
    length += r->padding;
    bytes file = {malloc(8 + length + end), 8 + length + end};
    put(file.data, (uint32_t)length, 8);
    memcpy(file.data + 8, header, length);
    memcpy(file.data + 8 + length, data, end);
    free(header);
    free(data);
    return file;
}

static lns_status parse(const recipe *r, const char *config, lns_superpoint_weights **weights) {
    bytes file = make(r);
    const lns_status status = lns_superpoint_weights_parse(file.data, file.size, "x.safetensors", config,
                                                           config != NULL ? strlen(config) : 0, weights);
    free(file.data);
    return status;
}

static void check_values(const lns_superpoint_weights *weights) {
    for (int i = 0; i < LAYERS; i++) {
        const lns_conv_weights *conv = &weights->conv[i];
        assert_int_equal(conv->outputs, layers[i].outputs);
        assert_int_equal(conv->inputs, layers[i].inputs);
        assert_int_equal(conv->kernel, layers[i].kernel);
        const size_t count = (size_t)(conv->outputs * conv->inputs * conv->kernel * conv->kernel);
        size_t wrong = 0;
        for (size_t k = 0; k < count; k++)
            wrong += conv->weight[k] != value_at(2 * i, k);
        for (size_t k = 0; k < (size_t)conv->outputs; k++)
            wrong += conv->bias[k] != value_at(2 * i + 1, k);
        assert_int_equal(wrong, 0);
    }
}

static void good_files(void **state) {
    (void)state;
    static const recipe recipes[] = {
        {.dtype = "F32"},
        {.dtype = "F16"},
        {.dtype = "BF16"},
        {.dtype = "F32", .padding = 1},
        {.dtype = "F32", .padding = 2},
        {.dtype = "F32", .padding = 3},
        {.dtype = "F16", .padding = 1},
        {.odd = "keypoint_decoder.conv_score_b.bias", .odd_dtype = "BF16"},
        {.extra = "\"another\":{\"dtype\":\"I64\",\"shape\":[3,0],\"data_offsets\":[0,0]}"},
    };
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        lns_superpoint_weights *weights;
        if (parse(&recipes[i], NULL, &weights) != LNS_OK)
            fail_msg("recipe %zu: %s", i, lns_error_message());
        check_values(weights);
        assert_int_equal(weights->border_removal_distance, 4);
        assert_string_equal(weights->license, "not stated in the file");
        lns_superpoint_weights_close(&weights);
        assert_null(weights);
    }
}

static void wrong_tensors(void **state) {
    (void)state;
    static const struct {
        recipe recipe;
        const char *message;
    } cases[] = {
        {{.odd = "encoder.conv_blocks.0.conv_a.weight", .odd_name = "conv1a.weight"},
         "no tensor 'encoder.conv_blocks.0.conv_a.weight'; SuperPoint needs it with the shape [64, 1, 3, 3]"},
        {{.odd = "descriptor_decoder.conv_descriptor_b.bias", .odd_name = "x"},
         "no tensor 'descriptor_decoder.conv_descriptor_b.bias'; SuperPoint needs it with the shape [256]"},
        {{.odd = "encoder.conv_blocks.0.conv_a.weight", .odd_shape = "[64,3,3]"},
         "tensor 'encoder.conv_blocks.0.conv_a.weight' has the shape [64, 3, 3]; SuperPoint needs [64, 1, 3, 3]"},
        {{.odd = "encoder.conv_blocks.0.conv_a.weight", .odd_shape = "[3,3,1,64]"}, "has the shape [3, 3, 1, 64]"},
        {{.odd = "encoder.conv_blocks.2.conv_a.weight", .odd_shape = "[64,128,3,3]"}, "needs [128, 64, 3, 3]"},
        {{.odd = "keypoint_decoder.conv_score_b.weight", .odd_shape = "[65,256]"}, "needs [65, 256, 1, 1]"},
        {{.odd = "keypoint_decoder.conv_score_b.bias", .odd_shape = "[5,13]"}, "has the shape [5, 13]"},
        {{.odd = "keypoint_decoder.conv_score_b.bias", .odd_shape = "[65,1,1,1,1,1,1,1]"}, "[65, 1, 1, 1, 1, 1, 1, 1]"},
        {{.odd = "encoder.conv_blocks.0.conv_a.bias", .odd_dtype = "I32"}, "not of type F32, F16 or BF16"},
        {{.odd = "encoder.conv_blocks.0.conv_a.bias", .odd_dtype = "F64"}, "not of type F32, F16 or BF16"},
        {{.odd = "encoder.conv_blocks.1.conv_b.bias", .odd_value = 0x7fc00000},
         "value 63 of tensor 'encoder.conv_blocks.1.conv_b.bias' is not a finite number"},
        {{.odd = "encoder.conv_blocks.1.conv_b.bias", .odd_value = 0x7f800001}, "not a finite number"},
        {{.odd = "encoder.conv_blocks.1.conv_b.weight", .odd_value = 0xff800000}, "value 36863 of tensor"},
        {{.dtype = "F16", .odd = "encoder.conv_blocks.1.conv_b.bias", .odd_value = 0x7c00}, "not a finite number"},
        {{.dtype = "F16", .odd = "encoder.conv_blocks.1.conv_b.bias", .odd_value = 0xfc01}, "not a finite number"},
        {{.dtype = "BF16", .odd = "encoder.conv_blocks.1.conv_b.bias", .odd_value = 0x7f80}, "not a finite number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lns_superpoint_weights *weights;
        const lns_status status = parse(&cases[i].recipe, NULL, &weights);
        if (status != LNS_ERROR_WEIGHTS || weights != NULL || strstr(lns_error_message(), cases[i].message) == NULL ||
            strstr(lns_error_message(), "'x.safetensors'") == NULL)
            fail_msg("case %zu: status %d: %s", i, status, lns_error_message());
    }
}

static void licenses(void **state) {
    (void)state;
    char long_text[600] = "{\"license\":\"";
    for (int i = 0; i < 120; i++)
        strcat(long_text, "a\xc3\xa4"); /* 360 bytes; byte 200 is the second of a letter */
    strcat(long_text, "\"}");
    static const char *const texts[][2] = {
        {"{}", "not stated in the file"},
        {"{\"license\":\"\"}", "not stated in the file"},
        {"{\"license\":\"MIT\"}", "MIT"},
        {"{\"licence\":\"Apache-2.0\"}", "Apache-2.0"},
        {"{\"licence\":\"B\",\"license\":\"A\"}", "A"},
        {"{\"license\":\"two\\nlines\\u0007\"}", "two lines "},
    };
    lns_superpoint_weights *weights;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(parse(&(recipe){.metadata = texts[i][0]}, NULL, &weights), LNS_OK);
        assert_string_equal(weights->license, texts[i][1]);
        lns_superpoint_weights_close(&weights);
    }
    assert_int_equal(parse(&(recipe){.metadata = long_text}, NULL, &weights), LNS_OK);
    assert_int_equal(strlen(weights->license), 199 + 3);
    assert_string_equal(weights->license + 196, "\xc3\xa4"
                                                "a...");
    lns_superpoint_weights_close(&weights);
}

static void configs(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int border;          /* -1: an error */
        const char *message; /* part of it */
    } cases[] = {
        {"{}", 4, NULL},
        {"{\"border_removal_distance\":0}", 0, NULL},
        {"{\"border_removal_distance\":240}", 240, NULL},
        {" {\"border_removal_distance\": 7, \"model_type\": \"superpoint\"}\n", 7, NULL},
        {"{\"border_removal_distance\":null}", 4, NULL},
        {"{\"encoder_hidden_sizes\":[64,64,128,128],\"decoder_hidden_size\":256,\"keypoint_decoder_dim\":65,"
         "\"descriptor_decoder_dim\":256,\"nms_radius\":99,\"architectures\":[\"X\"]}",
         4, NULL},
        {"{\"border_removal_distance\":1,\"border_removal_distance\":2}", 2, NULL},
        {"", -1, "ends too early"},
        {"[]", -1, "not an object"},
        {"null", -1, "not an object"},
        {"4", -1, "not an object"},
        {"{\"a\":1", -1, "ends too early"},
        {"{} x", -1, "JSON text"},
        {"{\"a\":1,}", -1, "invalid JSON"},
        {"\xef\xbb\xbf{}", -1, "starts with 0xef"},
        {"{\"a\":NaN}", -1, "invalid JSON"},
        {"{\"a\":Infinity}", -1, "invalid JSON"},
        {"{\"a\":'b'}", -1, "invalid JSON"},
        {"{\"border_removal_distance\":-1}", -1, "whole number from 0 to 240"},
        {"{\"border_removal_distance\":241}", -1, "is 241; it must be a whole number from 0 to 240"},
        {"{\"border_removal_distance\":4.0}", -1, "whole number"},
        {"{\"border_removal_distance\":\"4\"}", -1, "whole number"},
        {"{\"border_removal_distance\":true}", -1, "whole number"},
        {"{\"border_removal_distance\":[4]}", -1, "whole number"},
        {"{\"border_removal_distance\":4294967300}", -1, "whole number"},
        {"{\"model_type\":\"superglue\"}", -1, "\"model_type\" is 'superglue'; only \"superpoint\""},
        {"{\"model_type\":1}", -1, "model_type"},
        {"{\"model_type\":\"\"}", -1, "model_type"},
        {"{\"encoder_hidden_sizes\":[64,64,128]}", -1, "this architecture is not supported"},
        {"{\"encoder_hidden_sizes\":[64,64,128,256]}", -1, "[64, 64, 128, 128]"},
        {"{\"encoder_hidden_sizes\":64}", -1, "this architecture is not supported"},
        {"{\"decoder_hidden_size\":128}", -1, "\"decoder_hidden_size\" is 128; this architecture is not supported"},
        {"{\"keypoint_decoder_dim\":64}", -1, "keypoint_decoder_dim"},
        {"{\"descriptor_decoder_dim\":\"256\"}", -1, "descriptor_decoder_dim"},
        {"{\"descriptor_decoder_dim\":256.5}", -1, "descriptor_decoder_dim"},
    };
    bytes file = make(&(recipe){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *config = malloc(strlen(cases[i].text) + 1); /* ends where the text ends: without NUL */
        memcpy(config, cases[i].text, strlen(cases[i].text));
        lns_superpoint_weights *weights;
        const lns_status status =
            lns_superpoint_weights_parse(file.data, file.size, "x", config, strlen(cases[i].text), &weights);
        const int good = cases[i].border >= 0
                             ? status == LNS_OK && weights->border_removal_distance == cases[i].border
                             : (status == LNS_ERROR_WEIGHTS || status == LNS_ERROR_CORRUPT) && weights == NULL &&
                                   strstr(lns_error_message(), cases[i].message) != NULL &&
                                   strstr(lns_error_message(), "config.json") != NULL;
        if (!good)
            fail_msg("case %zu: %s: status %d: %s", i, cases[i].text, status, lns_error_message());
        lns_superpoint_weights_close(&weights);
        free(config);
    }
    char *large = calloc(1, (1 << 20) + 1);
    memset(large, ' ', (1 << 20) + 1);
    memcpy(large, "{}", 2);
    lns_superpoint_weights *weights;
    assert_int_equal(lns_superpoint_weights_parse(file.data, file.size, "x", large, 1 << 20, &weights), LNS_OK);
    lns_superpoint_weights_close(&weights);
    assert_int_equal(lns_superpoint_weights_parse(file.data, file.size, "x", large, (1 << 20) + 1, &weights),
                     LNS_ERROR_LIMIT);
    assert_null(weights);
    free(large);
    free(file.data);
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void files_of_a_location(void **state) {
    (void)state;
    char folder[] = "/tmp/lensing-weights-XXXXXX";
    char safetensors[64];
    char config[64];
    assert_non_null(mkdtemp(folder));
    snprintf(safetensors, sizeof safetensors, "%s/model.safetensors", folder);
    snprintf(config, sizeof config, "%s/config.json", folder);
    bytes file = make(&(recipe){.dtype = "F16"});
    write_file(safetensors, file.data, file.size);
    write_file(config, "{\"border_removal_distance\":9}", 29);

    lns_superpoint_weights *weights;
    lns_weights_location location = {.safetensors = safetensors, .config = config, .repository = folder};
    assert_int_equal(lns_superpoint_weights_load(&location, &weights), LNS_OK);
    check_values(weights);
    assert_int_equal(weights->border_removal_distance, 9);
    assert_string_equal(weights->license, "not stated in the file");
    lns_superpoint_weights_close(&weights);

    location = (lns_weights_location){.safetensors = safetensors, .repository = (char[]){LNS_DEFAULT_REPOSITORY}};
    assert_int_equal(lns_superpoint_weights_load(&location, &weights), LNS_OK);
    assert_int_equal(weights->border_removal_distance, 4);
    assert_string_equal(weights->license, "Magic Leap: academic or non-profit noncommercial research use only");
    lns_superpoint_weights_close(&weights);

    write_file(config, "[]", 2);
    location.config = config;
    assert_int_equal(lns_superpoint_weights_load(&location, &weights), LNS_ERROR_CORRUPT);
    assert_non_null(strstr(lns_error_message(), config));
    unlink(config);
    assert_int_equal(lns_superpoint_weights_load(&location, &weights), LNS_ERROR_IO);
    location.config = NULL;
    write_file(safetensors, "", 0);
    assert_int_equal(lns_superpoint_weights_load(&location, &weights), LNS_ERROR_CORRUPT);
    assert_non_null(strstr(lns_error_message(), safetensors));
    assert_null(weights);
    unlink(safetensors);
    assert_int_equal(lns_superpoint_weights_load(&location, &weights), LNS_ERROR_IO);
    rmdir(folder);
    free(file.data);
}

static void failing_allocations(void **state) {
    (void)state;
    bytes file = make(&(recipe){0});
    lns_status status = LNS_ERROR_OUT_OF_MEMORY;
    int tries = 0;
    for (; status != LNS_OK; tries++) {
        lns_superpoint_weights *weights;
        lns_alloc_fail_after(tries);
        status = lns_superpoint_weights_parse(file.data, file.size, "x", "{}", 2, &weights);
        lns_alloc_fail_after(-1);
        assert_true(status == LNS_OK || (status == LNS_ERROR_OUT_OF_MEMORY && weights == NULL));
        lns_superpoint_weights_close(&weights);
    }
    assert_true(tries >= 5);
    free(file.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files), cmocka_unit_test(wrong_tensors),       cmocka_unit_test(licenses),
        cmocka_unit_test(configs),    cmocka_unit_test(files_of_a_location), cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests_name("superpoint_weights", tests, NULL, NULL);
}
