/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <json.h>

#include "base/error.h"
#include "base/memory.h"
#include "weights/json_text.h"

/* The format itself allows headers of 100 MB; a model of 24 tensors needs 3 kB. */
#define HEADER_LIMIT ((size_t)1 << 20)
#define TENSOR_LIMIT 4096
#define METADATA_KEY "__metadata__"

struct lns_safetensors {
    json_object *header; /* owns the names */
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

/* Reads member `key` of tensor `name`, which must be an array. */
static lns_status get_array(const lns_safetensors *file, const char *name, json_object *object, const char *key,
                            json_object **array) {
    if (json_object_object_get_ex(object, key, array) && json_object_is_type(*array, json_type_array))
        return LNS_OK;
    return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s' has no list \"%s\"", file->label, name, key);
}

/* Reads element `index` of an array of tensor `name`: a whole number that fits an int64. */
static lns_status get_count(const lns_safetensors *file, const char *name, json_object *array, const char *key,
                            size_t index, uint64_t *value) {
    json_object *element = json_object_array_get_idx(array, index);
    const int64_t number = json_object_is_type(element, json_type_int) ? json_object_get_int64(element) : -1;
    if (number < 0)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': \"%s\"[%zu] is not a whole number >= 0", file->label,
                        name, key, index);
    *value = (uint64_t)number;
    return LNS_OK;
}

static lns_status read_shape(const lns_safetensors *file, json_object *object, lns_tensor *tensor, uint64_t *elements) {
    json_object *shape;
    lns_status status = get_array(file, tensor->name, object, "shape", &shape);
    if (status != LNS_OK)
        return status;
    const size_t dimensions = json_object_array_length(shape);
    if (dimensions > LNS_TENSOR_MAX_DIMENSIONS)
        return lns_fail(LNS_ERROR_LIMIT, "'%s': tensor '%.120s' has %zu dimensions, more than the limit of %d",
                        file->label, tensor->name, dimensions, LNS_TENSOR_MAX_DIMENSIONS);
    tensor->dimensions = (int)dimensions;
    *elements = 1;
    for (size_t i = 0; i < dimensions; i++) {
        status = get_count(file, tensor->name, shape, "shape", i, &tensor->shape[i]);
        if (status != LNS_OK)
            return status;
        if (__builtin_mul_overflow(*elements, tensor->shape[i], elements))
            return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': the product of its shape overflows", file->label,
                            tensor->name);
    }
    return LNS_OK;
}

/* Reads the range and checks it against the file and against what dtype and shape need. */
static lns_status read_range(const lns_safetensors *file, json_object *object, uint64_t bits, lns_tensor *tensor) {
    json_object *offsets;
    lns_status status = get_array(file, tensor->name, object, "data_offsets", &offsets);
    if (status != LNS_OK)
        return status;
    if (json_object_array_length(offsets) != 2)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': \"data_offsets\" has %zu numbers instead of 2",
                        file->label, tensor->name, json_object_array_length(offsets));
    uint64_t begin = 0;
    uint64_t end = 0;
    status = get_count(file, tensor->name, offsets, "data_offsets", 0, &begin);
    if (status == LNS_OK)
        status = get_count(file, tensor->name, offsets, "data_offsets", 1, &end);
    if (status != LNS_OK)
        return status;
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

static lns_status read_tensor(const lns_safetensors *file, const char *name, json_object *object, lns_tensor *tensor) {
    tensor->name = name;
    json_object *text;
    if (!json_object_is_type(object, json_type_object))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': the entry of tensor '%.120s' is not a JSON object", file->label,
                        name);
    if (!json_object_object_get_ex(object, "dtype", &text) || !json_object_is_type(text, json_type_string))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s' has no text \"dtype\"", file->label, name);
    const dtype_facts *facts = find_dtype(json_object_get_string(text));
    if (facts == NULL)
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s' has the unknown type '%.40s'", file->label, name,
                        json_object_get_string(text));
    tensor->dtype = facts->dtype;
    uint64_t bits = 0;
    const lns_status status = read_shape(file, object, tensor, &bits);
    if (status != LNS_OK)
        return status;
    if (__builtin_mul_overflow(bits, (uint64_t)facts->bits, &bits))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': tensor '%.120s': the product of its shape overflows", file->label,
                        name);
    return read_range(file, object, bits, tensor);
}

static lns_status check_metadata(const lns_safetensors *file, json_object *metadata) {
    if (!json_object_is_type(metadata, json_type_object))
        return lns_fail(LNS_ERROR_CORRUPT, "'%s': " METADATA_KEY " is not a JSON object", file->label);
    json_object_object_foreach(metadata, key, value) {
        if (!json_object_is_type(value, json_type_string))
            return lns_fail(LNS_ERROR_CORRUPT, "'%s': " METADATA_KEY ": the value of '%.120s' is not a text",
                            file->label, key);
    }
    return LNS_OK;
}

static lns_status read_entries(lns_safetensors *file) {
    const size_t entries = (size_t)json_object_object_length(file->header);
    if (entries > TENSOR_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT, "'%s' has %zu tensors, more than the limit of %d", file->label, entries,
                        TENSOR_LIMIT);
    file->tensors = lns_calloc(entries, sizeof *file->tensors);
    if (file->tensors == NULL)
        return lns_fail_memory(entries * sizeof *file->tensors);
    json_object_object_foreach(file->header, name, value) {
        const lns_status status = strcmp(name, METADATA_KEY) == 0
                                      ? check_metadata(file, value)
                                      : read_tensor(file, name, value, &file->tensors[file->count++]);
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
    json_object_put(file->header);
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
    json_object *metadata;
    json_object *value;
    if (!json_object_object_get_ex(file->header, METADATA_KEY, &metadata) ||
        !json_object_object_get_ex(metadata, key, &value))
        return NULL;
    return json_object_get_string(value);
}
