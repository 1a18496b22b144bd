/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "weights/json_text.h"

/* The format itself allows headers of 100 MB; a model of 24 tensors needs 3 kB. */
#define HEADER_LIMIT ((size_t)1 << 20)
#define TENSOR_LIMIT 4096
#define METADATA_KEY "__metadata__"

struct lns_safetensors {
    lns_json_text header; /* owns the names */
    lns_tensor *tensors;
    size_t count;
    const char *label;         /* while parsing */
    const unsigned char *data; /* behind the header */
    size_t data_size;
};

typedef struct dtype_facts {
    const char *name;
    lns_dtype dtype;
    unsigned bits;
} dtype_facts;

static const dtype_facts dtypes[] = {
    {"F32", LNS_DTYPE_F32, 32},      {"F16", LNS_DTYPE_F16, 16},      {"BF16", LNS_DTYPE_BF16, 16},
    {"BOOL", LNS_DTYPE_OTHER, 8},    {"U8", LNS_DTYPE_OTHER, 8},      {"I8", LNS_DTYPE_OTHER, 8},
    {"U16", LNS_DTYPE_OTHER, 16},    {"I16", LNS_DTYPE_OTHER, 16},    {"U32", LNS_DTYPE_OTHER, 32},
    {"I32", LNS_DTYPE_OTHER, 32},    {"U64", LNS_DTYPE_OTHER, 64},    {"I64", LNS_DTYPE_OTHER, 64},
    {"F64", LNS_DTYPE_OTHER, 64},    {"C64", LNS_DTYPE_OTHER, 64},    {"F8_E4M3", LNS_DTYPE_OTHER, 8},
    {"F8_E5M2", LNS_DTYPE_OTHER, 8}, {"F8_E8M0", LNS_DTYPE_OTHER, 8}, {"F6_E2M3", LNS_DTYPE_OTHER, 6},
    {"F6_E3M2", LNS_DTYPE_OTHER, 6}, {"F4", LNS_DTYPE_OTHER, 4},
};

static const dtype_facts *find_dtype(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

/* Finds the header and the data in the file. */
static lns_status split(lns_safetensors *file, const unsigned char *bytes, size_t size, size_t *header_size) {
    if (size < 10)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s' has %zu bytes: too short for a safetensors file", file->label, size);
    if (bytes[8] != '{')
        return lns_fail(LNS_ERROR_FORMAT,
                        "'%s' is not a safetensors file: its byte 8 is 0x%02x, not the '{' of a JSON header",
                        file->label, bytes[8]);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > HEADER_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT, "'%s': the header is %" PRIu64 " bytes long, more than the limit of %zu",
                        file->label, length, HEADER_LIMIT);
    if (length > size - 8)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s' is cut off: %zu bytes cannot hold a header of %" PRIu64 " bytes",
                        file->label, size, length);
    *header_size = (size_t)length;
    file->data = bytes + 8 + length;
    file->data_size = size - 8 - (size_t)length;
    return LNS_OK;
}

/* Finds member `key` of tensor `name`, which must be an array. */
static lns_status find_array(const lns_safetensors *file, const char *name, const lns_json_value *object,
                             const char *key, const lns_json_value **array) {
    *array = lns_json_find(object, key);
    if (*array != NULL && (*array)->kind == LNS_JSON_ARRAY)
        return LNS_OK;
    return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s' has no list \"%s\"", file->label, name, key);
}

/* Reads an array of tensor `name` whose elements are whole numbers that fit an int64. */
static lns_status read_counts(const lns_safetensors *file, const char *name, const lns_json_value *array,
                              uint64_t *counts) {
    size_t index = 0;
    for (const lns_json_value *element = array + 1; element < array + array->span; element += element->span) {
        const int64_t number = element->kind == LNS_JSON_INTEGER ? lns_json_integer(element) : -1;
        if (number < 0)
            return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': \"%s\"[%zu] is not a whole number >= 0",
                            file->label, name, array->key, index);
        counts[index++] = (uint64_t)number;
    }
    return LNS_OK;
}

static lns_status read_shape(const lns_safetensors *file, const lns_json_value *object, lns_tensor *tensor,
                             uint64_t *elements) {
    const lns_json_value *shape;
    lns_status status = find_array(file, tensor->name, object, "shape", &shape);
    if (status != LNS_OK)
        return status;
    const size_t dimensions = lns_json_count(shape);
    if (dimensions > LNS_TENSOR_MAX_DIMENSIONS)
        return lns_fail(LNS_ERROR_LIMIT, "'%s': tensor '%.120s' has %zu dimensions, more than the limit of %d",
                        file->label, tensor->name, dimensions, LNS_TENSOR_MAX_DIMENSIONS);
    tensor->dimensions = (int)dimensions;
    status = read_counts(file, tensor->name, shape, tensor->shape);
    if (status != LNS_OK)
        return status;
    *elements = 1;
    for (size_t i = 0; i < dimensions; i++) {
        if (__builtin_mul_overflow(*elements, tensor->shape[i], elements))
            return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': the product of its shape overflows", file->label,
                            tensor->name);
    }
    return LNS_OK;
}

/* Reads the range and checks it against the file and against what dtype and shape need. */
static lns_status read_range(const lns_safetensors *file, const lns_json_value *object, uint64_t bits,
                             lns_tensor *tensor) {
    const lns_json_value *offsets;
    lns_status status = find_array(file, tensor->name, object, "data_offsets", &offsets);
    if (status != LNS_OK)
        return status;
    const size_t count = lns_json_count(offsets);
    if (count != 2)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': \"data_offsets\" has %zu numbers instead of 2",
                        file->label, tensor->name, count);
    uint64_t range[2] = {0, 0};
    status = read_counts(file, tensor->name, offsets, range);
    if (status != LNS_OK)
        return status;
    const uint64_t begin = range[0];
    const uint64_t end = range[1];
    if (begin > end || end > file->data_size)
        return lns_fail(LNS_ERROR_CORRUPT,
                        "'%s': tensor '%.120s': its data [%" PRIu64 ", %" PRIu64
                        ") is not inside the %zu bytes of data",
                        file->label, tensor->name, begin, end, file->data_size);
    if (bits % 8 != 0 || end - begin != bits / 8)
        return lns_fail(LNS_ERROR_CORRUPT,
                        "'%s': tensor '%.120s' has %" PRIu64 " bytes of data, but its shape and type need %" PRIu64
                        " bits",
                        file->label, tensor->name, end - begin, bits);
    tensor->data = file->data + begin;
    tensor->size = (size_t)(end - begin);
    return LNS_OK;
}

static lns_status read_tensor(const lns_safetensors *file, const lns_json_value *entry, lns_tensor *tensor) {
    const char *name = entry->key;
    tensor->name = name;
    if (entry->kind != LNS_JSON_OBJECT)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the entry of tensor '%.120s' is not a JSON object", file->label,
                        name);
    const lns_json_value *dtype = lns_json_find(entry, "dtype");
    if (dtype == NULL || dtype->kind != LNS_JSON_STRING)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s' has no text \"dtype\"", file->label, name);
    const dtype_facts *facts = find_dtype(dtype->text);
    if (facts == NULL)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s' has the unknown type '%.40s'", file->label, name,
                        dtype->text);
    tensor->dtype = facts->dtype;
    uint64_t bits = 0;
    const lns_status status = read_shape(file, entry, tensor, &bits);
    if (status != LNS_OK)
        return status;
    if (__builtin_mul_overflow(bits, (uint64_t)facts->bits, &bits))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': the product of its shape overflows", file->label,
                        name);
    return read_range(file, entry, bits, tensor);
}

static lns_status check_metadata(const lns_safetensors *file, const lns_json_value *metadata) {
    if (metadata->kind != LNS_JSON_OBJECT)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': " METADATA_KEY " is not a JSON object", file->label);
    for (const lns_json_value *value = metadata + 1; value < metadata + metadata->span; value += value->span)
        if (value->kind != LNS_JSON_STRING)
            return lns_fail(LNS_ERROR_CORRUPT, "'%s': " METADATA_KEY ": the value of '%.120s' is not a text",
                            file->label, value->key);
    return LNS_OK;
}

static lns_status read_entries(lns_safetensors *file) {
    const lns_json_value *header = file->header.values;
    const size_t entries = lns_json_count(header);
    if (entries > TENSOR_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT, "'%s' has %zu tensors, more than the limit of %d", file->label, entries,
                        TENSOR_LIMIT);
    file->tensors = lns_calloc(entries, sizeof *file->tensors);
    if (file->tensors == NULL)
        return lns_fail_memory(entries * sizeof *file->tensors);
    for (const lns_json_value *entry = header + 1; entry < header + header->span; entry += entry->span) {
        const lns_status status = strcmp(entry->key, METADATA_KEY) == 0
                                      ? check_metadata(file, entry)
                                      : read_tensor(file, entry, &file->tensors[file->count++]);
        if (status != LNS_OK)
            return status;
    }
    return LNS_OK;
}

/* By place in the file; an empty tensor comes before the one that starts where it lies. */
static int compare_ranges(const void *first, const void *second) {
    const lns_tensor *a = first;
    const lns_tensor *b = second;
    if (a->data != b->data)
        return (const char *)a->data < (const char *)b->data ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

/* The format demands that the tensors cover the data exactly. Sorts them. */
static lns_status check_cover(lns_safetensors *file) {
    qsort(file->tensors, file->count, sizeof *file->tensors, compare_ranges);
    size_t end = 0;
    for (size_t i = 0; i < file->count; i++) {
        const lns_tensor *tensor = &file->tensors[i];
        const size_t begin = (size_t)((const unsigned char *)tensor->data - file->data);
        if (begin != end)
            return lns_fail(LNS_ERROR_CORRUPT,
                            "'%s': the data of tensor '%.120s' starts at %zu, %s the end of the tensor before it, %zu",
                            file->label, tensor->name, begin, begin < end ? "overlapping" : "leaving a hole after",
                            end);
        end = begin + tensor->size;
    }
    if (end != file->data_size)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': %zu bytes of data, but the tensors end at %zu", file->label,
                        file->data_size, end);
    return LNS_OK;
}

static lns_status parse(lns_safetensors *file, const void *bytes, size_t size) {
    size_t header_size = 0;
    lns_status status = split(file, bytes, size, &header_size);
    if (status == LNS_OK)
        status =
            lns_json_text_parse((const char *)bytes + 8, header_size, LNS_JSON_UNIQUE_KEYS, file->label, &file->header);
    if (status == LNS_OK)
        status = read_entries(file);
    if (status == LNS_OK)
        status = check_cover(file);
    return status;
}

lns_status lns_safetensors_parse(const void *bytes, size_t size, const char *label, lns_safetensors **result) {
    *result = NULL;
    lns_safetensors *file = lns_calloc(1, sizeof *file);
    if (file == NULL)
        return lns_fail_memory(sizeof *file);
    file->label = label;
    const lns_status status = parse(file, bytes, size);
    if (status != LNS_OK)
        lns_safetensors_close(&file);
    *result = file;
    return status;
}

void lns_safetensors_close(lns_safetensors **pointer) {
    lns_safetensors *file = *pointer;
    *pointer = NULL;
    if (file == NULL)
        return;
    lns_json_text_free(&file->header);
    lns_free(file->tensors);
    lns_free(file);
}

const lns_tensor *lns_safetensors_find(const lns_safetensors *file, const char *name) {
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *lns_safetensors_metadata(const lns_safetensors *file, const char *key) {
    const lns_json_value *metadata = lns_json_find(file->header.values, METADATA_KEY);
    const lns_json_value *value = metadata != NULL ? lns_json_find(metadata, key) : NULL;
    return value != NULL ? value->text : NULL;
}
