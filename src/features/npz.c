/* SPDX-License-Identifier: Apache-2.0 */
#include "features/npz.h"

#include <stdio.h>
#include <string.h>

#include <libdeflate.h>

#include "base/error.h"
#include "base/memory.h"
#include "features/buffer.h"
#include "features/half.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are written in the byte order of the machine, which must be little-endian"
#endif

/* A header of two short dimensions always fits into this, with the room that numpy leaves for growth. */
#define NPY_HEADER_SIZE 128
#define NPY_GROWTH_DIGITS 21

/* Above this, numpy's zip writer switches to 64-bit central entries. */
#define ENTRY_LIMIT UINT64_C(0x7fffffff)

#define ZIP_VERSION_64_BIT 45
#define ZIP_MADE_BY_UNIX (3 << 8)
#define ZIP_DATE_1980 0x0021
#define ZIP_SIZE_ELSEWHERE UINT32_C(0xffffffff)
#define ZIP_MODE_0600 UINT32_C(0x01800000)

typedef struct entry {
    size_t offset;
    uint32_t size;
    uint32_t crc;
} entry;

static void write_npy_header(const lns_array *array, char *header) {
    char dictionary[NPY_HEADER_SIZE], type[32], shape[64] = "()";
    snprintf(type, sizeof type, "|S%zu", array->item_size);
    if (array->dimensions == 1)
        snprintf(shape, sizeof shape, "(%zu,)", array->shape[0]);
    else if (array->dimensions == 2)
        snprintf(shape, sizeof shape, "(%zu, %zu)", array->shape[0], array->shape[1]);
    const int length = snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                                array->type != NULL ? array->type : type, shape);
    memset(header, ' ', NPY_HEADER_SIZE);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER_SIZE - 10;
    header[9] = 0;
    memcpy(header + 10, dictionary, (size_t)length);
    header[NPY_HEADER_SIZE - 1] = '\n';
}

static size_t array_bytes(const lns_array *array) {
    size_t size = array->item_size;
    for (int i = 0; i < array->dimensions; i++)
        size *= array->shape[i];
    return size;
}

static void add_name(lns_buffer *out, const lns_array *array) {
    lns_buffer_add_text(out, array->name);
    lns_buffer_add_text(out, ".npy");
}

/* Adds the elements and returns the checksum that continues `crc` over them. What is converted is checked while it is in
 * the cache. */
static uint32_t add_elements(lns_buffer *out, const lns_array *array, uint32_t crc) {
    enum { AT_A_TIME = 4096 };
    const size_t size = array_bytes(array);
    unsigned char *room = (unsigned char *)lns_buffer_reserve(out, size);
    if (room == NULL || size == 0)
        return crc;
    out->size += size;
    if (array->halves_of == NULL) {
        memcpy(room, array->data, size);
        return libdeflate_crc32(crc, room, size);
    }
    const size_t count = size / sizeof(uint16_t);
    for (size_t i = 0; i < count; i += AT_A_TIME) {
        uint16_t halves[AT_A_TIME];
        const size_t part = count - i < AT_A_TIME ? count - i : AT_A_TIME;
        lns_half_from_float(array->halves_of + i, part, halves);
        memcpy(room + i * sizeof *halves, halves, part * sizeof *halves);
        crc = libdeflate_crc32(crc, halves, part * sizeof *halves);
    }
    return crc;
}

/* `start`: where the file begins. The size of the entry is known before its elements are, its checksum is not: that is
 * written last. */
static void add_entry(lns_buffer *out, size_t start, const lns_array *array, entry *facts) {
    char header[NPY_HEADER_SIZE];
    write_npy_header(array, header);
    facts->offset = out->size - start;
    facts->size = (uint32_t)(NPY_HEADER_SIZE + array_bytes(array));
    lns_buffer_add(out, "PK\x03\x04", 4);
    lns_buffer_add_u16(out, ZIP_VERSION_64_BIT);
    lns_buffer_add_u16(out, 0); /* flags */
    lns_buffer_add_u16(out, 0); /* stored */
    lns_buffer_add_u16(out, 0); /* time */
    lns_buffer_add_u16(out, ZIP_DATE_1980);
    const size_t checksum = out->size;
    lns_buffer_add_u32(out, 0);
    lns_buffer_add_u32(out, ZIP_SIZE_ELSEWHERE);
    lns_buffer_add_u32(out, ZIP_SIZE_ELSEWHERE);
    lns_buffer_add_u16(out, (uint16_t)(strlen(array->name) + 4));
    lns_buffer_add_u16(out, 20); /* size of the extra field */
    add_name(out, array);
    lns_buffer_add_u16(out, 1); /* 64-bit sizes */
    lns_buffer_add_u16(out, 16);
    lns_buffer_add_u64(out, facts->size);
    lns_buffer_add_u64(out, facts->size);
    lns_buffer_add(out, header, NPY_HEADER_SIZE);
    facts->crc = add_elements(out, array, libdeflate_crc32(0, header, NPY_HEADER_SIZE));
    lns_buffer_set_u32(out, checksum, facts->crc);
}

static void add_central_entry(lns_buffer *out, const lns_array *array, const entry *facts) {
    lns_buffer_add(out, "PK\x01\x02", 4);
    lns_buffer_add_u16(out, ZIP_MADE_BY_UNIX | ZIP_VERSION_64_BIT);
    lns_buffer_add_u16(out, ZIP_VERSION_64_BIT);
    lns_buffer_add_u16(out, 0); /* flags */
    lns_buffer_add_u16(out, 0); /* stored */
    lns_buffer_add_u16(out, 0); /* time */
    lns_buffer_add_u16(out, ZIP_DATE_1980);
    lns_buffer_add_u32(out, facts->crc);
    lns_buffer_add_u32(out, facts->size);
    lns_buffer_add_u32(out, facts->size);
    lns_buffer_add_u16(out, (uint16_t)(strlen(array->name) + 4));
    lns_buffer_add_u16(out, 0); /* extra field */
    lns_buffer_add_u16(out, 0); /* comment */
    lns_buffer_add_u16(out, 0); /* disk */
    lns_buffer_add_u16(out, 0); /* internal attributes */
    lns_buffer_add_u32(out, ZIP_MODE_0600);
    lns_buffer_add_u32(out, (uint32_t)facts->offset);
    add_name(out, array);
}

#define ARRAYS_LIMIT 8

/* Bytes of the fixed parts of the records. */
enum { LOCAL_SIZE = 30 + 20, CENTRAL_SIZE = 46, END_SIZE = 22 };

size_t lns_npz_size(const lns_array *arrays, size_t count) {
    size_t size = END_SIZE;
    for (size_t i = 0; i < count; i++)
        size += LOCAL_SIZE + CENTRAL_SIZE + 2 * (strlen(arrays[i].name) + 4) + NPY_HEADER_SIZE + array_bytes(&arrays[i]);
    return size;
}

lns_status lns_npz_add(lns_buffer *out, const lns_array *arrays, size_t count) {
    entry entries[ARRAYS_LIMIT];
    const size_t size = lns_npz_size(arrays, count), start = out->size;
    if (count > ARRAYS_LIMIT || size > ENTRY_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT,
                        "NPZ: %zu bytes in %zu arrays; at most %llu bytes in %d arrays can be written", size, count,
                        (unsigned long long)ENTRY_LIMIT, ARRAYS_LIMIT);
    lns_buffer_reserve(out, size);
    for (size_t i = 0; i < count; i++)
        add_entry(out, start, &arrays[i], &entries[i]);
    const size_t directory = out->size - start;
    for (size_t i = 0; i < count; i++)
        add_central_entry(out, &arrays[i], &entries[i]);
    const size_t directory_size = out->size - start - directory;
    lns_buffer_add(out, "PK\x05\x06", 4);
    lns_buffer_add_u16(out, 0); /* disk */
    lns_buffer_add_u16(out, 0); /* disk of the directory */
    lns_buffer_add_u16(out, (uint16_t)count);
    lns_buffer_add_u16(out, (uint16_t)count);
    lns_buffer_add_u32(out, (uint32_t)directory_size);
    lns_buffer_add_u32(out, (uint32_t)directory);
    lns_buffer_add_u16(out, 0); /* comment */
    return LNS_OK;
}

/* numpy has no text of no bytes. */
static lns_array text_array(const char *name, const char *text) {
    return (lns_array){.name = name, .item_size = strlen(text), .data = text};
}

lns_status lns_features_to_npz(const lns_features *features, void **bytes, size_t *size) {
    if (bytes != NULL)
        *bytes = NULL;
    if (size != NULL)
        *size = 0;
    if (features == NULL || bytes == NULL || size == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_features_to_npz: features, bytes and size must not be NULL");
    const size_t n = features->count;
    const int64_t image_size[2] = {features->image_width, features->image_height};
    lns_array arrays[6];
    size_t count = 0;
    arrays[count++] = (lns_array){"keypoints", "<f4", 4, 2, {n, 2}, features->keypoints, NULL};
    arrays[count++] = (lns_array){"scores", "<f4", 4, 1, {n, 1}, features->scores, NULL};
    if (features->descriptors != NULL)
        arrays[count++] =
            (lns_array){"descriptors", "<f4", 4, 2, {n, LNS_DESCRIPTOR_SIZE}, features->descriptors, NULL};
    arrays[count++] = (lns_array){"image_size", "<i8", 8, 1, {2, 1}, image_size, NULL};
    if (features->weights != NULL && *features->weights != '\0')
        arrays[count++] = text_array("weights", features->weights);
    if (features->license != NULL && *features->license != '\0')
        arrays[count++] = text_array("weights_license", features->license);
    lns_buffer out = {0};
    const lns_status status = lns_npz_add(&out, arrays, count);
    return status == LNS_OK ? lns_buffer_take(&out, bytes, size) : status;
}
