/* SPDX-License-Identifier: Apache-2.0 */
/* The whole network on a few tiles of the simulated card, with synthetic weights, against plain loops that round as the
 * card does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include <lensing/features.h>

#include "../synthetic_weights.h"
#include "blackhole/layer.h"
#include "blackhole/network.h"
#include "card.h"

/* Three blocks down: the middle one has neighbours at both sides. */
static const lns_blackhole_grid grid = {3, 2};
enum { WIDTH = 2 * LNS_BLACKHOLE_BLOCK_WIDTH, HEIGHT = 3 * LNS_BLACKHOLE_BLOCK_HEIGHT, CELLS = WIDTH * HEIGHT / 64 };

/* ---- Expected values ---------------------------------------------------------------------------- */

typedef struct picture {
    int channels, width, height;
    float *values; /* [channel][y][x] */
} picture;

static picture make_picture(int channels, int width, int height) {
    const picture p = {channels, width, height,
                       malloc((size_t)channels * (size_t)width * (size_t)height * sizeof(float))};
    assert_non_null(p.values);
    return p;
}

static float *at(const picture *p, int channel, int y, int x) {
    return p->values + ((size_t)channel * (size_t)p->height + (size_t)y) * (size_t)p->width + (size_t)x;
}

static float bfloat16(float value) {
    return lns_blackhole_float32(lns_blackhole_bfloat16(value));
}

/* To 7 bits, halves away from zero. */
static float seven_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x10000) & 0xFFFE0000;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The first layer takes gray levels, and its weights are not rounded. */
static void add_channel(const picture *in, int channel, const float *weights, int kernel, int first, double *sums) {
    for (int i = 0; i < kernel * kernel; i++) {
        const int dx = i % kernel - kernel / 2, dy = i / kernel - kernel / 2;
        const double weight = first ? (double)weights[i] / 255 : bfloat16(weights[i]);
        for (int y = dy < 0 ? 1 : 0; y < in->height && y + dy < in->height; y++)
            for (int x = dx < 0 ? 1 : 0; x < in->width && x + dx < in->width; x++)
                sums[y * in->width + x] += weight * *at(in, channel, y + dy, x + dx);
    }
}

/* `in` is freed. */
static picture convolve(picture in, const lns_conv_weights *conv, int first, int relu) {
    const size_t size = (size_t)conv->kernel * (size_t)conv->kernel, pixels = (size_t)in.width * (size_t)in.height;
    picture out = make_picture(conv->outputs, in.width, in.height);
    double *sums = malloc(pixels * sizeof *sums);
    assert_non_null(sums);
    for (int output = 0; output < conv->outputs; output++) {
        for (size_t i = 0; i < pixels; i++)
            sums[i] = conv->bias[output];
        for (int input = 0; input < conv->inputs; input++)
            add_channel(&in, input, conv->weight + ((size_t)output * (size_t)conv->inputs + (size_t)input) * size,
                        conv->kernel, first, sums);
        for (size_t i = 0; i < pixels; i++)
            out.values[(size_t)output * pixels + i] = (float)(relu && sums[i] < 0 ? 0 : sums[i]);
    }
    free(sums);
    free(in.values);
    return out;
}

static picture pool(picture in) {
    picture out = make_picture(in.channels, in.width / 2, in.height / 2);
    for (int c = 0; c < in.channels; c++)
        for (int y = 0; y < out.height; y++)
            for (int x = 0; x < out.width; x++)
                *at(&out, c, y, x) = fmaxf(fmaxf(*at(&in, c, 2 * y, 2 * x), *at(&in, c, 2 * y, 2 * x + 1)),
                                           fmaxf(*at(&in, c, 2 * y + 1, 2 * x), *at(&in, c, 2 * y + 1, 2 * x + 1)));
    free(in.values);
    return out;
}

static picture rounded(picture p) {
    for (size_t i = 0; i < (size_t)p.channels * (size_t)p.width * (size_t)p.height; i++)
        p.values[i] = seven_bits(p.values[i]);
    return p;
}

static picture copy_of(const picture *p) {
    const picture copy = make_picture(p->channels, p->width, p->height);
    memcpy(copy.values, p->values, (size_t)p->channels * (size_t)p->width * (size_t)p->height * sizeof(float));
    return copy;
}

static picture encode(const lns_superpoint_weights *weights, const uint8_t *frame) {
    picture p = make_picture(1, WIDTH, HEIGHT);
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        p.values[i] = frame[i];
    for (int layer = LNS_CONV1A; layer <= LNS_CONV4B; layer++) {
        p = convolve(p, &weights->conv[layer], layer == LNS_CONV1A, 1);
        if (layer == LNS_CONV1B || layer == LNS_CONV2B || layer == LNS_CONV3B)
            p = pool(p);
        p = rounded(p);
    }
    return p;
}

static void expected_scores(const picture *logits, float *scores) {
    for (int y = 0; y < logits->height; y++)
        for (int x = 0; x < logits->width; x++) {
            double sum = 0;
            for (int c = 0; c < 65; c++)
                sum += exp(*at(logits, c, y, x));
            for (int c = 0; c < 64; c++)
                scores[(y * 8 + c / 8) * WIDTH + x * 8 + c % 8] = (float)(exp(*at(logits, c, y, x)) / sum);
        }
}

static void expected_descriptors(const picture *p, float *descriptors) {
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            float *out = descriptors + (size_t)(y * p->width + x) * LNS_DESCRIPTOR_SIZE;
            double squares = 0;
            for (int c = 0; c < LNS_DESCRIPTOR_SIZE; c++)
                squares += (double)*at(p, c, y, x) * *at(p, c, y, x);
            for (int c = 0; c < LNS_DESCRIPTOR_SIZE; c++)
                out[c] = (float)(*at(p, c, y, x) / sqrt(squares));
        }
}

static void expect(const lns_superpoint_weights *weights, const uint8_t *frame, float *scores, float *descriptors) {
    const picture encoded = encode(weights, frame);
    picture head = rounded(convolve(copy_of(&encoded), &weights->conv[LNS_CONV_SCORE_A], 0, 1));
    head = convolve(head, &weights->conv[LNS_CONV_SCORE_B], 0, 0);
    expected_scores(&head, scores);
    free(head.values);
    head = rounded(convolve(encoded, &weights->conv[LNS_CONV_DESCRIPTOR_A], 0, 1));
    head = convolve(head, &weights->conv[LNS_CONV_DESCRIPTOR_B], 0, 0);
    expected_descriptors(&head, descriptors);
    free(head.values);
}

/* ---- Comparison --------------------------------------------------------------------------------- */

/* Correlation of two maps, and the largest difference in parts of the largest expected value. */
static double correlation(const float *a, const float *b, size_t count) {
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < count; i++) {
        mean_a += a[i] / (double)count;
        mean_b += b[i] / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

static double largest_difference(const float *a, const float *b, size_t count) {
    double difference = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        difference = fmax(difference, fabs((double)a[i] - b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return difference / largest;
}

typedef struct maps {
    float scores[WIDTH * HEIGHT], descriptors[CELLS * LNS_DESCRIPTOR_SIZE];
} maps;

static int alike(const maps *got, const maps *expected, const char *what) {
    const size_t scores = sizeof got->scores / sizeof *got->scores;
    const size_t descriptors = sizeof got->descriptors / sizeof *got->descriptors;
    const double score = correlation(got->scores, expected->scores, scores);
    const double descriptor = correlation(got->descriptors, expected->descriptors, descriptors);
    const double score_difference = largest_difference(got->scores, expected->scores, scores);
    const double descriptor_difference = largest_difference(got->descriptors, expected->descriptors, descriptors);
    print_message("%-22s correlation %.6f and %.6f, largest difference %.1e and %.1e\n", what, score, descriptor,
                  score_difference, descriptor_difference);
    return score > 0.9997 && descriptor > 0.9997 && score_difference < 0.05 && descriptor_difference < 0.05;
}

/* ---- Keypoints ------------------------------------------------------------------------------------ */

/* Marks the keypoints of the card's own scores, found without haste. */
static size_t mark_keypoints(const float *scores, const lns_blackhole_rules *rules, uint8_t *marks) {
    const int border = (int)rules->border, radius = (int)rules->radius;
    size_t count = 0;
    memset(marks, 0, WIDTH * HEIGHT);
    for (int y = border; y < HEIGHT - border; y++)
        for (int x = border; x < WIDTH - border; x++) {
            const float score = scores[y * WIDTH + x];
            int kept = score > rules->threshold;
            for (int v = y - radius; v <= y + radius && kept; v++)
                for (int u = x - radius; u <= x + radius && kept; u++)
                    kept = u < 0 || v < 0 || u >= WIDTH || v >= HEIGHT || scores[v * WIDTH + u] <= score;
            marks[y * WIDTH + x] = (uint8_t)kept;
            count += (size_t)kept;
        }
    return count;
}

/* Runs the network with a rule, and checks the keypoints against the scores that it gave. */
static void run(lns_blackhole_network *network, const uint8_t *frame, const lns_blackhole_rules *rules, maps *got) {
    lns_bh_keypoint *keypoints = malloc(WIDTH * HEIGHT * sizeof *keypoints);
    uint8_t *marks = malloc(WIDTH * HEIGHT);
    size_t count;
    assert_true(keypoints != NULL && marks != NULL);
    memset(got, 0xFF, sizeof *got);
    if (lns_blackhole_network_detect(network, frame, rules, 1, got->scores, keypoints, &count) != LNS_OK)
        fail_msg("%s", lns_error_message());
    lns_blackhole_network_descriptors(network, got->descriptors);
    assert_int_equal(count, mark_keypoints(got->scores, rules, marks));
    assert_true(count > 10);
    for (size_t k = 0; k < count; k++) {
        assert_true(keypoints[k].pixel < WIDTH * HEIGHT && marks[keypoints[k].pixel]);
        marks[keypoints[k].pixel] = 0; /* each once */
        assert_memory_equal(&keypoints[k].score, &got->scores[keypoints[k].pixel], sizeof(float));
    }
    print_message("radius %u: %zu keypoints\n", rules->radius, count);
    free(keypoints);
    free(marks);
}

static void gives_the_expected_maps(void **state) {
    (void)state;
    lns_blackhole_transport *card = test_card();
    if (card == NULL)
        skip();
    lns_superpoint_weights *weights = synthetic_weights_make();
    uint8_t *whole = malloc(640 * 480), *frame = malloc(WIDTH * HEIGHT);
    maps *expected = malloc(sizeof *expected), *got = malloc(sizeof *got), *again = malloc(sizeof *again);
    assert_true(weights != NULL && whole != NULL && frame != NULL && expected != NULL && got != NULL && again != NULL);
    synthetic_frame(whole);
    for (int y = 0; y < HEIGHT; y++)
        memcpy(frame + y * WIDTH, whole + (y + 100) * 640 + 200, WIDTH);
    expect(weights, frame, expected->scores, expected->descriptors);

    lns_blackhole_network *network;
    if (lns_blackhole_network_open(card, weights, grid, &network) != LNS_OK)
        fail_msg("%s", lns_error_message());
    run(network, frame, &(lns_blackhole_rules){4, 0.005F, 4}, got);
    assert_true(alike(got, expected, "frame"));

    /* A damaged frame: 8 x 8 pixels in the middle, at the border of two tiles. */
    for (int y = 56; y < 64; y++)
        memset(frame + y * WIDTH + 60, 255, 8);
    run(network, frame, &(lns_blackhole_rules){8, 0.02F, 1}, again);
    assert_false(alike(again, expected, "damaged frame"));

    for (int y = 56; y < 64; y++)
        memcpy(frame + y * WIDTH + 60, whole + (y + 100) * 640 + 260, 8);
    run(network, frame, &(lns_blackhole_rules){1, 0, 0}, again);
    assert_memory_equal(got, again, sizeof *got);
    lns_blackhole_network_close(&network);
    assert_null(network);

    synthetic_weights_free(weights);
    free(whole);
    free(frame);
    free(expected);
    free(got);
    free(again);
}

static void refuses_grids_that_do_not_fit(void **state) {
    (void)state;
    static const lns_blackhole_grid bad[] = {{0, 1}, {1, 0}, {13, 10}, {12, 11}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lns_blackhole_network *network = (void *)&network;
        assert_int_equal(lns_blackhole_network_open(NULL, NULL, bad[i], &network), LNS_ERROR_INVALID_ARGUMENT);
        assert_null(network);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_grids_that_do_not_fit),
        cmocka_unit_test(gives_the_expected_maps),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_card_close();
    return failed;
}
