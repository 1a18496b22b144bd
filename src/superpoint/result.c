/* SPDX-License-Identifier: Apache-2.0 */
#include "superpoint/result.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Floats for one keypoint: x, y twice and the score. */
#define FLOATS (2 + 2 + 1)

static size_t rounded(size_t bytes) {
    return (bytes + LNS_ALIGNMENT - 1) / LNS_ALIGNMENT * LNS_ALIGNMENT;
}

static size_t text_size(const char *text) {
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies a text to `room`. */
static const char *put_text(char *room, const char *text) {
    return text != NULL ? memcpy(room, text, text_size(text)) : NULL;
}

lns_status lns_result_create(size_t count, int with_descriptors, const char *weights, const char *license,
                             lns_features **result, lns_result_arrays *arrays) {
    *result = NULL;
    const size_t per_keypoint = (FLOATS + (with_descriptors ? LNS_DESCRIPTOR_SIZE : 0)) * sizeof(float);
    const size_t texts = text_size(weights) + text_size(license);
    if (count > (SIZE_MAX - 5 * LNS_ALIGNMENT - sizeof(lns_features) - texts) / per_keypoint)
        return lns_fail(LNS_ERROR_OUT_OF_MEMORY, "out of memory: %zu keypoints", count);
    const size_t pairs = rounded(count * 2 * sizeof(float)), singles = rounded(count * sizeof(float));
    const size_t header = rounded(sizeof(lns_features));
    const size_t rows = with_descriptors ? rounded(count * LNS_DESCRIPTOR_SIZE * sizeof(float)) : 0;
    const size_t arrays_end = header + 2 * pairs + singles + rows;
    const size_t size = arrays_end + texts;
    char *block = lns_aligned_alloc(size);
    if (block == NULL)
        return lns_fail_memory(size);
    lns_features *features = (lns_features *)(void *)block;
    memset(features, 0, sizeof *features);
    arrays->keypoints = (float *)(void *)(block + header);
    arrays->network_keypoints = (float *)(void *)(block + header + pairs);
    arrays->scores = (float *)(void *)(block + header + 2 * pairs);
    arrays->descriptors = with_descriptors ? (float *)(void *)(block + header + 2 * pairs + singles) : NULL;
    features->count = count;
    features->keypoints = arrays->keypoints;
    features->network_keypoints = arrays->network_keypoints;
    features->scores = arrays->scores;
    features->descriptors = arrays->descriptors;
    features->weights = put_text(block + arrays_end, weights);
    features->license = put_text(block + arrays_end + text_size(weights), license);
    *result = features;
    return LNS_OK;
}

lns_status lns_features_copy(const lns_features *features, lns_features **copy) {
    if (copy == NULL || features == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_features_copy: features and copy must not be NULL");
    lns_result_arrays arrays = {0};
    const size_t count = features->count;
    const lns_status status =
        lns_result_create(count, features->descriptors != NULL, features->weights, features->license, copy, &arrays);
    if (status != LNS_OK)
        return status;
    lns_features facts = *features;
    facts.keypoints = arrays.keypoints;
    facts.network_keypoints = arrays.network_keypoints;
    facts.scores = arrays.scores;
    facts.descriptors = arrays.descriptors;
    facts.weights = (*copy)->weights;
    facts.license = (*copy)->license;
    **copy = facts;
    if (count == 0)
        return LNS_OK;
    memcpy(arrays.keypoints, features->keypoints, count * 2 * sizeof(float));
    memcpy(arrays.network_keypoints, features->network_keypoints, count * 2 * sizeof(float));
    memcpy(arrays.scores, features->scores, count * sizeof(float));
    if (arrays.descriptors != NULL)
        memcpy(arrays.descriptors, features->descriptors, count * LNS_DESCRIPTOR_SIZE * sizeof(float));
    return LNS_OK;
}

void lns_features_close(lns_features **features) {
    if (features == NULL)
        return;
    lns_aligned_free(*features);
    *features = NULL;
}
