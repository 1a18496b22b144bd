/* SPDX-License-Identifier: Apache-2.0 */
/* Any score map, NaN and infinity too, under any rules: what is selected obeys them. The first bytes are the rules, the
 * others the scores, again from the start when there are too few. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "superpoint/postprocess.h"

#define CHECKED 64 /* keypoints whose window is looked at, and whose descriptors are sampled */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static lns_selection_rules read_rules(const uint8_t *bytes) {
    lns_selection_rules rules = {
        .max_keypoints = (bytes[0] | bytes[1] << 8 | (bytes[2] & 7) << 16) - 1,
        .nms_radius = bytes[3] % 33,
        .border = bytes[4],
    };
    memcpy(&rules.threshold, bytes + 5, sizeof rules.threshold);
    if (!(rules.threshold >= 0))
        rules.threshold = 0;
    return rules;
}

static void fill(float *map, size_t count, const uint8_t *bytes, size_t size) {
    const size_t whole = size / sizeof *map;
    for (size_t i = 0; i < count; i++)
        map[i] = 0;
    for (size_t i = 0; i < count && whole > 0; i++)
        memcpy(map + i, bytes + i % whole * sizeof *map, sizeof *map);
}

static bool is_maximum(const float *scores, int x, int y, int radius) {
    const float score = scores[y * LNS_NETWORK_WIDTH + x];
    for (int v = y - radius; v <= y + radius; v++)
        for (int u = x - radius; u <= x + radius; u++)
            if (u >= 0 && u < LNS_NETWORK_WIDTH && v >= 0 && v < LNS_NETWORK_HEIGHT &&
                scores[v * LNS_NETWORK_WIDTH + u] > score)
                return false;
    return true;
}

static void check_keypoint(const float *scores, const lns_selection_rules *rules, const lns_selection *found,
                           size_t i) {
    const uint32_t pixel = found->pixels[i];
    const int x = (int)(pixel % LNS_NETWORK_WIDTH), y = (int)(pixel / LNS_NETWORK_WIDTH);
    if (pixel >= LNS_FRAME_PIXELS || !(found->scores[i] > rules->threshold) || found->scores[i] != scores[pixel] ||
        x < rules->border || y < rules->border || x >= LNS_NETWORK_WIDTH - rules->border ||
        y >= LNS_NETWORK_HEIGHT - rules->border)
        abort();
    if (i > 0 && (found->scores[i - 1] < found->scores[i] ||
                  (found->scores[i - 1] == found->scores[i] && found->pixels[i - 1] >= pixel)))
        abort();
    if (i < CHECKED && !is_maximum(scores, x, y, rules->nms_radius))
        abort();
}

static void check_descriptors(const lns_selection *found) {
    static float map[LNS_CELLS_X * LNS_CELLS_Y * LNS_DESCRIPTOR_SIZE];
    if (map[0] == 0)
        for (size_t i = 0; i < sizeof map / sizeof *map; i++)
            map[i] = (float)(i * 7 % 31) - 14;
    const size_t count = found->count < CHECKED ? found->count : CHECKED;
    float *descriptors = malloc((count * LNS_DESCRIPTOR_SIZE + 1) * sizeof *descriptors);
    if (descriptors == NULL)
        abort();
    lns_sample_descriptors(map, found->pixels, count, descriptors);
    for (size_t i = 0; i < count; i++) {
        double sum = 0;
        for (size_t j = 0; j < LNS_DESCRIPTOR_SIZE; j++)
            sum += (double)descriptors[i * LNS_DESCRIPTOR_SIZE + j] * descriptors[i * LNS_DESCRIPTOR_SIZE + j];
        if (!(fabs(sum - 1) < 1e-4))
            abort();
    }
    free(descriptors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static float scores[LNS_FRAME_PIXELS];
    if (size < 9)
        return 0;
    const lns_selection_rules rules = read_rules(data);
    fill(scores, LNS_FRAME_PIXELS, data + 9, size - 9);
    lns_selection found;
    if (lns_select_keypoints(scores, &rules, &found) != LNS_OK)
        abort();
    if (found.pixels == NULL || (rules.max_keypoints >= 0 && found.count > (size_t)rules.max_keypoints))
        abort();
    for (size_t i = 0; i < found.count; i++)
        check_keypoint(scores, &rules, &found, i);
    check_descriptors(&found);
    lns_selection_free(&found);
    return 0;
}
