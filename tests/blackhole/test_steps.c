/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the resident program other than convolutions, each on tiles of the simulated card, and each once more with a
 * damaged input, which must be noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "blackhole/layer.h"
#include "blackhole/tile.h"
#include "card.h"

#define TIMEOUT_MS 300e3

/* Two columns and two rows of tiles, with the gap of columns 8 and 9 between them. */
static const lns_blackhole_tiles tiles = {{7, 4}, {10, 5}};
static uint32_t request;

static uint64_t random_state = 1;

static uint32_t random_bits(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 32);
}

static void fill_random(void *data, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)data)[i] = (uint8_t)(random_bits() >> 24);
}

/* ---- Programs ----------------------------------------------------------------------------------- */

static lns_blackhole_transport *card;

static int start_card(void **state) {
    (void)state;
    card = test_card();
    if (card != NULL && lns_blackhole_start_tiles(card, tiles, TIMEOUT_MS) != LNS_OK)
        fail_msg("%s", lns_error_message());
    return 0;
}

static void need_card(void) {
    if (card == NULL)
        skip();
}

static void write_tile(lns_blackhole_tile tile, uint32_t address, const void *data, size_t size) {
    assert_int_equal(card->operations->write(card, tile, address, data, size), LNS_OK);
}

static void read_tile(lns_blackhole_tile tile, uint32_t address, void *data, size_t size) {
    assert_int_equal(card->operations->read(card, tile, address, data, size), LNS_OK);
}

/* A program in the making: steps first, then what they point to. */
typedef struct builder {
    uint32_t steps, used;
    uint32_t words[512];
} builder;

enum { STEPS = 16 };

static uint32_t put(builder *b, const void *data, size_t size) {
    const uint32_t at = LNS_BH_PROGRAM + STEPS * sizeof(lns_bh_step) + b->used;
    memcpy((uint8_t *)b->words + STEPS * sizeof(lns_bh_step) + b->used, data, size);
    b->used += (uint32_t)size;
    return at;
}

static void add_step(builder *b, uint32_t kind, uint32_t at) {
    b->words[2 * b->steps] = kind;
    b->words[2 * b->steps + 1] = at;
    b->steps++;
}

static void add_copy(builder *b, uint32_t kind, const lns_bh_copy *item) {
    const lns_bh_copies list = {1, put(b, item, sizeof *item), 0};
    add_step(b, kind, put(b, &list, sizeof list));
}

/* Ends the program; all steps that are not set are ends. */
static void load(const builder *b, lns_blackhole_tile tile) {
    write_tile(tile, LNS_BH_PROGRAM, b->words, sizeof b->words);
}

static void run_all(void) {
    if (run_tiles(card, tiles, LNS_BH_PROGRAM, ++request) != LNS_OK)
        fail_msg("%s", lns_error_message());
}

/* Runs the same program on all tiles. */
static void run(const builder *b) {
    lns_blackhole_tile tile = tiles.first;
    do
        load(b, tile);
    while (lns_blackhole_next_tile(tiles, &tile));
    run_all();
}

/* ---- The first layer's channels ------------------------------------------------------------------ */

enum { IMAGE_WIDTH = 10, IMAGE_HEIGHT = 7, IMAGE_ROW = 32, IMAGE_LEFT = 5, IMAGE_AT = 0x20000, SPREAD_AT = 0x30000 };

static int spread_is(const uint8_t *bytes, const uint16_t *channels) {
    for (int y = 0; y < IMAGE_HEIGHT; y++)
        for (int x = 0; x < IMAGE_WIDTH; x++)
            for (int c = 0; c < 16; c++) {
                const float value = c >= 12      ? 0.0F
                                    : c % 4 == 3 ? 1.0F
                                                 : bytes[(y + c % 4) * IMAGE_ROW + IMAGE_LEFT + x + c / 4];
                if (channels[(y * IMAGE_WIDTH + x) * 16 + c] != lns_blackhole_bfloat16(value))
                    return 0;
            }
    return 1;
}

static void spreads_an_image(void **state) {
    (void)state;
    need_card();
    uint8_t bytes[(IMAGE_HEIGHT + 2) * IMAGE_ROW];
    uint16_t channels[IMAGE_HEIGHT * IMAGE_WIDTH * 16];
    fill_random(bytes, sizeof bytes);
    bytes[IMAGE_LEFT] = 0;
    bytes[IMAGE_LEFT + 1] = 255;
    bytes[IMAGE_LEFT + 2] = 1;
    builder b = {0};
    const lns_bh_image image = {IMAGE_AT + IMAGE_LEFT, IMAGE_ROW, SPREAD_AT, IMAGE_WIDTH, IMAGE_HEIGHT};
    add_step(&b, LNS_BH_IMAGE, put(&b, &image, sizeof image));
    for (int damaged = 0; damaged <= 1; damaged++) {
        write_tile(tiles.last, IMAGE_AT, bytes, sizeof bytes);
        run(&b);
        read_tile(tiles.last, SPREAD_AT, channels, sizeof channels);
        bytes[4 * IMAGE_ROW + IMAGE_LEFT + 3] ^= (uint8_t)damaged; /* after the second run: not what was sent */
        assert_int_equal(spread_is(bytes, channels), !damaged);
        bytes[4 * IMAGE_ROW + IMAGE_LEFT + 3] ^= (uint8_t)damaged;
    }
}

/* ---- Scores --------------------------------------------------------------------------------------- */

enum { COLUMNS = 8, ROWS = 5, LOGITS_AT = 0x20000, SCORES_AT = 0x40000, SCORE_ROW = 320 };

static float *logit(float *planes, int cell, int channel) {
    return planes + ((size_t)(channel / 16) * COLUMNS * ROWS + (size_t)cell) * 16 + channel % 16;
}

/* Largest error, as a part of the score where that is above 1e-30. */
static double worst_score(float *logits, const float *scores) {
    double worst = 0;
    for (int cell = 0; cell < COLUMNS * ROWS; cell++) {
        double maximum = -INFINITY, sum = 0;
        for (int c = 0; c < 65; c++)
            maximum = fmax(maximum, *logit(logits, cell, c));
        for (int c = 0; c < 65; c++)
            sum += exp(*logit(logits, cell, c) - maximum);
        for (int c = 0; c < 64; c++) {
            const double expected = exp(*logit(logits, cell, c) - maximum) / sum;
            const int y = cell / COLUMNS * 8 + c / 8, x = cell % COLUMNS * 8 + c % 8;
            const double error = fabs(scores[y * SCORE_ROW / 4 + x] - expected);
            worst = fmax(worst, expected > 1e-30 ? error / expected : error * 1e30);
        }
    }
    return worst;
}

static void makes_scores(void **state) {
    (void)state;
    need_card();
    static float logits[5 * COLUMNS * ROWS * 16], scores[ROWS * 8 * SCORE_ROW / 4];
    /* Flat, ordinary and extreme cells; a cell that is all in its dustbin, and one with equal logits. */
    static const float scales[] = {1e-3F, 1, 5, 20, 80};
    for (int cell = 0; cell < COLUMNS * ROWS; cell++)
        for (int c = 0; c < 80; c++)
            *logit(logits, cell, c) = ((float)(random_bits() >> 8) * 0x1p-23F - 1) * scales[cell % 5];
    *logit(logits, 7, 64) = 1000;
    for (int c = 0; c < 65; c++)
        *logit(logits, 9, c) = -3;
    builder b = {0};
    const lns_bh_scores step = {LOGITS_AT, COLUMNS, ROWS, SCORES_AT, SCORE_ROW};
    add_step(&b, LNS_BH_SCORES, put(&b, &step, sizeof step));
    for (int damaged = 0; damaged <= 1; damaged++) {
        float *victim = logit(logits, 11, 20);
        *victim += damaged ? 1e-3F : 0;
        write_tile(tiles.first, LOGITS_AT, logits, sizeof logits);
        run(&b);
        read_tile(tiles.first, SCORES_AT, scores, sizeof scores);
        *victim -= damaged ? 1e-3F : 0;
        const double worst = worst_score(logits, scores);
        print_message("scores%s: worst relative error %.1e\n", damaged ? ", damaged" : "", worst);
        /* Logits of 80 have steps of 2^-18, and so has the exponent of what comes out. */
        assert_int_equal(worst < 1e-5, !damaged);
    }
}

/* ---- Keypoints ------------------------------------------------------------------------------------ */

/* A block in the middle of a frame of 200 x 100 pixels, with what is around it. */
enum { BLOCK_WIDTH = 64, BLOCK_HEIGHT = 40, BLOCK_X = 128, BLOCK_Y = 3, FRAME_WIDTH = 200, FRAME_HEIGHT = 100 };
enum { RING = LNS_BH_LARGEST_RADIUS, MAP_ROW = BLOCK_WIDTH + 2 * RING, MAP_ROWS = BLOCK_HEIGHT + 2 * RING };
enum { MAP_AT = 0x20000, LISTS_AT = 0x40000, LIST_SIZE = 64 + 10 * 64 * 8 };

static int is_keypoint(const float *map, const lns_bh_rules *rules, float threshold, int x, int y) {
    const int border = (int)rules->border, radius = (int)rules->radius;
    const float score = map[(y + RING) * MAP_ROW + x + RING];
    if (!(score > threshold) || BLOCK_X + x < border || BLOCK_X + x >= FRAME_WIDTH - border || BLOCK_Y + y < border ||
        BLOCK_Y + y >= FRAME_HEIGHT - border)
        return 0;
    for (int v = y - radius; v <= y + radius; v++)
        for (int u = x - radius; u <= x + radius; u++)
            if (map[(v + RING) * MAP_ROW + u + RING] > score)
                return 0;
    return 1;
}

/* Whether the lists are just the keypoints of `map`. */
static int lists_are(const uint32_t *lists, const float *map, const lns_bh_rules *rules, float threshold) {
    uint8_t marks[BLOCK_HEIGHT][BLOCK_WIDTH];
    int missing = 0;
    for (int y = 0; y < BLOCK_HEIGHT; y++)
        for (int x = 0; x < BLOCK_WIDTH; x++)
            missing += marks[y][x] = (uint8_t)is_keypoint(map, rules, threshold, x, y);
    for (int list = 0; list < LNS_BH_LISTS; list++, lists += LIST_SIZE / 4)
        for (uint32_t i = 0; i < lists[0]; i++, missing--) {
            const uint32_t pixel = lists[16 + 2 * i], x = pixel % FRAME_WIDTH - BLOCK_X,
                           y = pixel / FRAME_WIDTH - BLOCK_Y;
            if (x >= BLOCK_WIDTH || y >= BLOCK_HEIGHT || !marks[y][x] ||
                memcmp(&lists[17 + 2 * i], &map[(y + RING) * MAP_ROW + x + RING], 4) != 0)
                return 0;
            marks[y][x] = 0;
        }
    return missing == 0;
}

/* Few different scores, so that there are ties; plateaus, and numbers that are none. */
static void make_map(float *map) {
    for (int i = 0; i < MAP_ROWS * MAP_ROW; i++)
        map[i] = (float)(random_bits() >> 22) * 0x1p-10F;
    for (int y = 30; y < 40; y++)
        for (int x = 30; x < 45; x++)
            map[y * MAP_ROW + x] = 1.5F;
    map[20 * MAP_ROW + 50] = NAN;
    map[20 * MAP_ROW + 51] = 2;
    map[45 * MAP_ROW + 60] = INFINITY;
    map[25 * MAP_ROW + RING - 1] = 3; /* in the ring: suppresses, and is not listed */
}

static void finds_keypoints(void **state) {
    (void)state;
    need_card();
    static float map[MAP_ROWS * MAP_ROW];
    static uint32_t lists[LNS_BH_LISTS * LIST_SIZE / 4];
    const lns_bh_suppression step = {
        .scores = MAP_AT + (RING * MAP_ROW + RING) * 4,
        .scores_row = MAP_ROW * 4,
        .width = BLOCK_WIDTH,
        .height = BLOCK_HEIGHT,
        .x = BLOCK_X,
        .y = BLOCK_Y,
        .frame_width = FRAME_WIDTH,
        .frame_height = FRAME_HEIGHT,
        .lists = LISTS_AT,
        .list_size = LIST_SIZE,
    };
    builder b = {0};
    add_step(&b, LNS_BH_KEYPOINTS, put(&b, &step, sizeof step));
    make_map(map);
    write_tile(tiles.first, MAP_AT, map, sizeof map);
    for (uint32_t radius = 1; radius <= RING; radius++) {
        const float threshold = radius % 2 == 0 ? 0.9F : 0;
        lns_bh_rules rules = {radius, 0, radius == 8 ? 12 : radius, 0};
        memcpy(&rules.threshold, &threshold, sizeof threshold);
        write_tile(tiles.first, LNS_BH_RULES, &rules, sizeof rules);
        run(&b);
        read_tile(tiles.first, LISTS_AT, lists, sizeof lists);
        assert_true(lists_are(lists, map, &rules, threshold));
        map[44 * MAP_ROW + 40] += 4; /* not what the card saw */
        assert_false(lists_are(lists, map, &rules, threshold));
        map[44 * MAP_ROW + 40] -= 4;
    }
}

static void finds_none_without_radius(void **state) {
    (void)state;
    need_card();
    const lns_bh_rules rules = {0};
    uint32_t counts[LNS_BH_LISTS];
    write_tile(tiles.first, LNS_BH_RULES, &rules, sizeof rules);
    run_all(); /* the program of the test before */
    for (uint32_t i = 0; i < LNS_BH_LISTS; i++)
        read_tile(tiles.first, LISTS_AT + i * LIST_SIZE, &counts[i], 4);
    for (uint32_t i = 0; i < LNS_BH_LISTS; i++)
        assert_int_equal(counts[i], 0);
}

/* ---- Between tiles -------------------------------------------------------------------------------- */

enum { HERE = 0x20000, THERE = 0x50000, COPIED = 4 * 3 * 96 };

/* 4 planes of 3 rows of 96 bytes, with gaps, from the tile right of it, after that has signalled. */
static void make_exchange(builder *b, lns_blackhole_tile tile, int late) {
    const lns_blackhole_tile other = {tile.x == 7 ? 10 : 7, tile.y};
    const uint32_t noc_tile = LNS_BH_NOC_TILE(other.x, other.y);
    const lns_bh_copy item = {HERE, THERE, 0, noc_tile, 96, 3, 128, 192, 4, 1024, 4096, 0};
    const lns_bh_signal signal = {LNS_BH_COUNTERS, 1, {noc_tile}};
    const lns_bh_wait wait = {LNS_BH_COUNTERS, 1};
    /* What the other one fetches is written by a step, by one of the two after a long time. */
    const lns_bh_fill delay = {0x100000, 1, 65536, 1, 0, 1, 0};
    const lns_bh_fill fill = {THERE, 0x1000u * tile.x + tile.y, 96 / 4, 3, 192, 4, 4096};
    const lns_bh_fill items[2] = {late ? delay : fill, fill};
    const lns_bh_fills fills = {2, put(b, items, sizeof items)};
    add_step(b, LNS_BH_FILL, put(b, &fills, sizeof fills));
    add_step(b, LNS_BH_SIGNAL, put(b, &signal, sizeof signal));
    add_step(b, LNS_BH_WAIT, put(b, &wait, sizeof wait));
    add_copy(b, LNS_BH_FETCH, &item);
    add_step(b, LNS_BH_ARRIVE, 0);
}

static int exchanged(lns_blackhole_tile tile, uint32_t expected) {
    uint32_t got[1024];
    read_tile(tile, HERE, got, sizeof got);
    for (size_t i = 0; i < sizeof got / 4; i++) {
        const size_t row = i % 256 / 32, word = i % 32;
        if (got[i] != (row < 3 && word < 24 ? expected : 0xEEEEEEEE))
            return 0;
    }
    return 1;
}

static void clear_exchange(lns_blackhole_tile tile) {
    static const uint32_t zeros[4 * 1024];
    uint32_t marks[1024];
    memset(marks, 0xEE, sizeof marks);
    write_tile(tile, HERE, marks, sizeof marks);
    write_tile(tile, THERE, zeros, sizeof zeros);
}

static void tiles_wait_for_each_other(void **state) {
    (void)state;
    need_card();
    const lns_bh_counter zero = {0};
    for (int round = 0; round < 3; round++) { /* counters go on from one request to the next */
        lns_blackhole_tile tile = tiles.first;
        do {
            builder b = {0};
            make_exchange(&b, tile, (tile.x == 7) == (round == 1));
            load(&b, tile);
            clear_exchange(tile);
            if (round == 0)
                write_tile(tile, LNS_BH_COUNTERS, &zero, sizeof zero);
        } while (lns_blackhole_next_tile(tiles, &tile));
        run_all();
        tile = tiles.first;
        do {
            const uint32_t right = 0x1000u * (tile.x == 7 ? 10 : 7) + tile.y;
            assert_true(exchanged(tile, right));
            assert_false(exchanged(tile, right + 1));
        } while (lns_blackhole_next_tile(tiles, &tile));
    }
}

/* Without waiting, the late tile's data is not there yet: the test above can fail. */
static void the_exchange_needs_the_wait(void **state) {
    (void)state;
    need_card();
    const lns_bh_counter zero = {0};
    lns_blackhole_tile tile = tiles.first;
    do {
        builder b = {0};
        make_exchange(&b, tile, tile.x == 7);
        b.words[2 * 1] = b.words[2 * 2] = LNS_BH_LAND; /* instead of the signal and the wait */
        load(&b, tile);
        clear_exchange(tile);
        write_tile(tile, LNS_BH_COUNTERS, &zero, sizeof zero);
    } while (lns_blackhole_next_tile(tiles, &tile));
    run_all();
    assert_false(exchanged((lns_blackhole_tile){10, 4}, 0x7004));
    assert_true(exchanged((lns_blackhole_tile){7, 4}, 0xA004));
}

/* ---- Multicast ------------------------------------------------------------------------------------ */

enum { STREAMED = 2 * 16384 + 1024, STREAM_AT = 0x60000, STREAM_DRAM = 0x100040, READY = 2, FREE = 3 };

static uint32_t counter_at(int index) {
    return (uint32_t)(LNS_BH_COUNTERS + (size_t)index * sizeof(lns_bh_counter));
}

/* The first tile streams two pieces into one place; all say when it is free and wait until each has come. The second
 * piece comes only after all have copied the first one away. */
static void make_stream(builder *b, lns_blackhole_tile tile) {
    const uint32_t first = LNS_BH_NOC_TILE(tiles.first.x, tiles.first.y);
    const uint32_t last = LNS_BH_NOC_TILE(tiles.last.x, tiles.last.y);
    const lns_bh_signal signal = {counter_at(FREE), 1, {first}};
    const lns_bh_wait wait = {counter_at(READY), 1};
    const uint32_t signal_at = put(b, &signal, sizeof signal), wait_at = put(b, &wait, sizeof wait);
    for (uint32_t piece = 0; piece < 2; piece++) {
        const lns_bh_stream stream = {STREAM_DRAM + piece * STREAMED,
                                      LNS_BH_NOC_TILE(17, 12),
                                      STREAM_AT,
                                      STREAMED,
                                      LNS_BH_NOC_RECTANGLE(first, last),
                                      4,
                                      counter_at(FREE),
                                      counter_at(READY)};
        const lns_bh_copy away = {.local = STREAM_AT,
                                  .remote_low = 0x80000 + piece * 0x10000,
                                  .remote_tile = LNS_BH_NOC_TILE(tile.x, tile.y),
                                  .size = STREAMED,
                                  .rows = 1,
                                  .planes = 1};
        add_step(b, LNS_BH_SIGNAL, signal_at);
        if (tile.x == tiles.first.x && tile.y == tiles.first.y)
            add_step(b, LNS_BH_STREAM, put(b, &stream, sizeof stream));
        add_step(b, LNS_BH_WAIT, wait_at);
        add_copy(b, LNS_BH_SEND, &away);
        add_step(b, LNS_BH_LAND, 0);
    }
}

static void one_tile_streams_to_all(void **state) {
    (void)state;
    need_card();
    const lns_blackhole_tile dram = {17, 12}, outside = {6, 4};
    static const lns_bh_counter zeros[2];
    static uint8_t data[2 * STREAMED], got[STREAMED];
    fill_random(data, sizeof data);
    write_tile(dram, STREAM_DRAM, data, sizeof data);
    write_tile(outside, STREAM_AT, data + 4, STREAMED);
    lns_blackhole_tile tile = tiles.first;
    do {
        builder b = {0};
        make_stream(&b, tile);
        load(&b, tile);
        write_tile(tile, counter_at(READY), zeros, sizeof zeros);
    } while (lns_blackhole_next_tile(tiles, &tile));
    run_all();
    tile = tiles.first;
    do
        for (uint32_t piece = 0; piece < 2; piece++) {
            read_tile(tile, 0x80000 + piece * 0x10000, got, STREAMED);
            assert_memory_equal(got, data + piece * STREAMED, STREAMED);
            assert_memory_not_equal(got, data + (1 - piece) * STREAMED, STREAMED);
        }
    while (lns_blackhole_next_tile(tiles, &tile));
    read_tile(outside, STREAM_AT, got, STREAMED);
    assert_memory_equal(got, data + 4, STREAMED);
}

/* ---- With DRAM and the host ---------------------------------------------------------------------- */

static void copies_large_data(void **state) {
    (void)state;
    need_card();
    enum { SIZE = 50048 }; /* more than one request of 16384 bytes */
    const lns_blackhole_tile dram = {17, 12};
    lns_blackhole_host_memory host;
    assert_int_equal(card->operations->pin(card, 2 * SIZE, &host), LNS_OK);
    uint8_t *expected = malloc(SIZE);
    assert_non_null(expected);
    fill_random(expected, SIZE);
    fill_random(host.data, SIZE);
    assert_int_equal(card->operations->write(card, dram, 0x12340, expected, SIZE), LNS_OK);
    const uint64_t back = host.noc_address + SIZE;
    const uint32_t pcie = LNS_BH_NOC_TILE(LNS_BLACKHOLE_PCIE_X, LNS_BLACKHOLE_PCIE_Y);
    const lns_bh_copy from_dram = {.local = HERE,
                                   .remote_low = 0x12340,
                                   .remote_tile = LNS_BH_NOC_TILE(17, 12),
                                   .size = SIZE,
                                   .rows = 1,
                                   .planes = 1};
    const lns_bh_copy to_host = {.local = HERE,
                                 .remote_low = (uint32_t)back,
                                 .remote_high = (uint32_t)(back >> 32),
                                 .remote_tile = pcie,
                                 .size = SIZE,
                                 .rows = 1,
                                 .planes = 1};
    const lns_bh_copy from_host = {.local = THERE,
                                   .remote_low = (uint32_t)host.noc_address,
                                   .remote_high = (uint32_t)(host.noc_address >> 32),
                                   .remote_tile = pcie,
                                   .size = SIZE,
                                   .rows = 1,
                                   .planes = 1};
    builder b = {0};
    add_copy(&b, LNS_BH_FETCH, &from_dram);
    add_copy(&b, LNS_BH_FETCH, &from_host);
    add_step(&b, LNS_BH_LAND, 0);
    add_copy(&b, LNS_BH_SEND, &to_host);
    add_step(&b, LNS_BH_LAND, 0);
    run(&b);
    assert_memory_equal((uint8_t *)host.data + SIZE, expected, SIZE);
    read_tile(tiles.last, THERE, expected, SIZE);
    assert_memory_equal(host.data, expected, SIZE);
    expected[SIZE - 1] ^= 1;
    assert_memory_not_equal(host.data, expected, SIZE);
    free(expected);

    /* Memory that has been given back is none of the card's any more. */
    card->operations->unpin(card, &host);
    assert_int_equal(run_tiles(card, tiles, LNS_BH_PROGRAM, ++request), LNS_ERROR_SYSTEM);
    assert_non_null(strstr(lns_error_message(), "which is not pinned"));
    assert_int_equal(lns_blackhole_start_tiles(card, tiles, TIMEOUT_MS), LNS_OK);
    request = 0;
}

static void names_unknown_steps(void **state) {
    (void)state;
    need_card();
    builder b = {0};
    add_step(&b, LNS_BH_LAND, 0);
    add_step(&b, 77, 0);
    load(&b, tiles.first);
    assert_int_equal(run_tiles(card, (lns_blackhole_tiles){tiles.first, tiles.first}, LNS_BH_PROGRAM, ++request),
                     LNS_ERROR_SYSTEM);
    assert_non_null(strstr(lns_error_message(), "tile (7, 4) of the card does not know step 1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spreads_an_image),          cmocka_unit_test(makes_scores),
        cmocka_unit_test(finds_keypoints),           cmocka_unit_test(finds_none_without_radius),
        cmocka_unit_test(tiles_wait_for_each_other), cmocka_unit_test(the_exchange_needs_the_wait),
        cmocka_unit_test(one_tile_streams_to_all),   cmocka_unit_test(copies_large_data),
        cmocka_unit_test(names_unknown_steps),
    };
    const int failed = cmocka_run_group_tests(tests, start_card, NULL);
    test_card_close();
    return failed;
}
