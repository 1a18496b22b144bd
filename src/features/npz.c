/* SPDX-License-Identifier: Apache-2.0 */
#include "features/npz.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "features/buffer.h"

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
    char dictionary[NPY_HEADER_SIZE];
    int length =
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': ", array->type);
    length += array->dimensions == 1
                  ? snprintf(dictionary + length, sizeof dictionary - (size_t)length, "(%zu,), }", array->shape[0])
                  : snprintf(dictionary + length, sizeof dictionary - (size_t)length, "(%zu, %zu), }", array->shape[0],
                             array->shape[1]);
    memset(header, ' ', NPY_HEADER_SIZE);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER_SIZE - 10;
    header[9] = 0;
    memcpy(header + 10, dictionary, (size_t)length);
    header[NPY_HEADER_SIZE - 1] = '\n';
}

static size_t array_bytes(const lns_array *array) {
    return array->shape[0] * (array->dimensions == 2 ? array->shape[1] : 1) * array->item_size;
}

static void add_name(lns_buffer *out, const lns_array *array) {
    lns_buffer_add_text(out, array->name);
    lns_buffer_add_text(out, ".npy");
}

static uint32_t checksum(const char *header, const void *data, size_t size) {
    uLong crc = crc32_z(0, (const Bytef *)header, NPY_HEADER_SIZE);
    if (size > 0)
        crc = crc32_z(crc, data, size);
    return (uint32_t)crc;
}

static void add_entry(lns_buffer *out, const lns_array *array, entry *facts) {
    char header[NPY_HEADER_SIZE];
    write_npy_header(array, header);
    const size_t data_size = array_bytes(array);
    facts->offset = out->size;
    facts->size = (uint32_t)(NPY_HEADER_SIZE + data_size);
    facts->crc = checksum(header, array->data, data_size);
    lns_buffer_add(out, "PK\x03\x04", 4);
    lns_buffer_add_u16(out, ZIP_VERSION_64_BIT);
    lns_buffer_add_u16(out, 0); /* flags */
    lns_buffer_add_u16(out, 0); /* stored */
    lns_buffer_add_u16(out, 0); /* time */
    lns_buffer_add_u16(out, ZIP_DATE_1980);
    lns_buffer_add_u32(out, facts->crc);
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
    lns_buffer_add(out, array->data, data_size);
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

lns_status lns_npz_write(const lns_array *arrays, size_t count, void **bytes, size_t *size) {
    entry entries[ARRAYS_LIMIT];
    lns_buffer out = {0};
    *bytes = NULL;
    *size = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += 512 + (uint64_t)array_bytes(&arrays[i]);
    if (count > ARRAYS_LIMIT || total > ENTRY_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT,
                        "NPZ: %llu bytes in %zu arrays; at most %llu bytes in %d arrays can be written",
                        (unsigned long long)total, count, (unsigned long long)ENTRY_LIMIT, ARRAYS_LIMIT);
    lns_buffer_reserve(&out, (size_t)total);
    for (size_t i = 0; i < count; i++)
        add_entry(&out, &arrays[i], &entries[i]);
    const size_t directory = out.size;
    for (size_t i = 0; i < count; i++)
        add_central_entry(&out, &arrays[i], &entries[i]);
    const size_t directory_size = out.size - directory;
    lns_buffer_add(&out, "PK\x05\x06", 4);
    lns_buffer_add_u16(&out, 0); /* disk */
    lns_buffer_add_u16(&out, 0); /* disk of the directory */
    lns_buffer_add_u16(&out, (uint16_t)count);
    lns_buffer_add_u16(&out, (uint16_t)count);
    lns_buffer_add_u32(&out, (uint32_t)directory_size);
    lns_buffer_add_u32(&out, (uint32_t)directory);
    lns_buffer_add_u16(&out, 0); /* comment */
    return lns_buffer_take(&out, bytes, size);
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
    lns_array arrays[4];
    size_t count = 0;
    arrays[count++] = (lns_array){"keypoints", "<f4", 4, 2, {n, 2}, features->keypoints};
    arrays[count++] = (lns_array){"scores", "<f4", 4, 1, {n, 1}, features->scores};
    if (features->descriptors != NULL)
        arrays[count++] = (lns_array){"descriptors", "<f4", 4, 2, {n, LNS_DESCRIPTOR_SIZE}, features->descriptors};
    arrays[count++] = (lns_array){"image_size", "<i8", 8, 1, {2, 1}, image_size};
    return lns_npz_write(arrays, count, bytes, size);
}

/* All bits, or none. Selecting with these instead of branches, the loop below can be made of vectors. */
static inline uint32_t bits_if(int condition) {
    return 0 - (uint32_t)condition;
}

/* Adding a power of two pushes the bits that do not fit out of the mantissa, rounded by the processor's own rule. */
static inline __attribute__((always_inline)) uint16_t half_from_bits(uint32_t bits) {
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t size = bits & 0x7fffffff;
    /* Normal results: rebias the exponent, add half of the last kept place, less one when it is even already. */
    const uint32_t normal = (size - (UINT32_C(112) << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    /* Results below 2^-14 count in steps of 2^-24, which is the last place of a number in [0.5, 1). */
    float value;
    memcpy(&value, &size, sizeof value);
    value += 0.5f;
    uint32_t small;
    memcpy(&small, &value, sizeof small);
    small -= UINT32_C(0x3f000000);
    const uint32_t special = 0x7c00 | (bits_if(size > 0x7f800000) & (0x200 | (size >> 13 & 0x3ff)));
    const uint32_t is_small = bits_if(size < (UINT32_C(113) << 23));
    /* 65520 and above round to infinity. */
    const uint32_t is_special = bits_if(size >= 0x477ff000);
    const uint32_t result = (special & is_special) | (small & is_small) | (normal & ~is_special & ~is_small);
    return (uint16_t)(sign | result);
}

/* Defines halves_<name>(): one loop, which the compiler makes vectors of. */
#define HALVES(name, target)                                                                                           \
    target static void halves_##name(const float *restrict from, size_t count, uint16_t *restrict to) {                \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint32_t bits;                                                                                             \
            memcpy(&bits, from + i, sizeof bits);                                                                      \
            to[i] = half_from_bits(bits);                                                                              \
        }                                                                                                              \
    }

HALVES(c, )
#if defined(__x86_64__)
HALVES(avx2, __attribute__((target("avx2"))))
#endif

void lns_half_from_float(const float *from, size_t count, uint16_t *to) {
#if defined(__x86_64__)
    lns_cpu_level level;
    if (lns_cpu_choose_level(&level) == LNS_OK && level >= LNS_CPU_AVX2) {
        halves_avx2(from, count, to);
        return;
    }
#endif
    halves_c(from, count, to);
}

lns_status lns_npz_half_descriptors(const lns_features *features, void **bytes, size_t *size) {
    const size_t count = features->count * LNS_DESCRIPTOR_SIZE;
    *bytes = NULL;
    *size = 0;
    uint16_t *halves = lns_alloc_array(count, sizeof *halves);
    if (halves == NULL)
        return lns_fail_memory(count * sizeof *halves);
    lns_half_from_float(features->descriptors, count, halves);
    const lns_array array = {"descriptors", "<f2", 2, 2, {features->count, LNS_DESCRIPTOR_SIZE}, halves};
    const lns_status status = lns_npz_write(&array, 1, bytes, size);
    lns_free(halves);
    return status;
}
