/* SPDX-License-Identifier: Apache-2.0 */
/* Core B: boots the tile, waits for requests, and walks through the program of one. */
#include "noc.h"
#include "work.h"

static void configure(uint32_t word, uint32_t value) {
    word_at(CONFIGURATION)[word] = value;
}

/* Words that are the same for every convolution. */
static void configure_once(void) {
    configure(CFG_ALU_OVERRIDES, 0);
    configure(CFG_CORE_DST_ACCESS, 0);
    configure(CFG_PACK_STRIDES_ZW, 0);
    configure(CFG_PACK_OUT_STRIDES_XY, 0);
    configure(CFG_PACK_OUT_STRIDES_ZW, 0);
    configure(CFG_PACK_OUT_BASE, 0);
    configure(CFG_PACK_DST_READ, PACK_READ_FLOAT32);
    configure(CFG_PACK_ROW_MAP, 0);
    configure(CFG_PACK_ROW_MAP + 1, 0);
    configure(CFG_PACK_EDGE, PACK_EDGE_KEEP_ALL);
    configure(CFG_PACK_EDGE + 1, PACK_EDGE_KEEP_ALL);
    configure(CFG_PACK_COUNTERS, 16u << PACK_ROWS_PER_PLANE_SHIFT);
    configure(CFG_PACK_SECTIONS, 0);
    configure(CFG_PACK_DOWNSAMPLE, 0);
    configure(CFG_PACK_DST_OFFSET, 0);
    configure(CFG_DST_ACCESS, 0);
    configure(CFG_UNPACK_FORCED_EXPONENT, UNPACK_ADD_DESTINATION);
    configure(CFG_UNPACK0_OUT_STRIDES_XY, 0);
    configure(CFG_UNPACK0_OUT_STRIDES_ZW, 0);
    configure(CFG_UNPACK0_TILE, FORMAT_BFLOAT16 | TILE_UNCOMPRESSED);
    configure(CFG_UNPACK0_TILE_YZ, 1 | 1u << TILE_Z_SHIFT);
    configure(CFG_UNPACK0_FORMAT, FORMAT_BFLOAT16 | UNPACK_THROTTLE_X4 << UNPACK_THROTTLE_SHIFT);
    configure(CFG_UNPACK0_CONTEXTS, UNPACK_UNCOMPRESSED);
    configure(CFG_UNPACK0_DESTINATION, SRCA_FIRST);
    configure(CFG_UNPACK0_OFFSET, 0);
    configure(CFG_UNPACK1_TILE, FORMAT_BFLOAT16 | TILE_UNCOMPRESSED | (uint32_t)LNS_BH_CHANNELS << TILE_X_SHIFT);
    configure(CFG_UNPACK1_DOWNSAMPLE, 0);
    configure(CFG_UNPACK1_FORMAT, FORMAT_BFLOAT16 | UNPACK_THROTTLE_X4 << UNPACK_THROTTLE_SHIFT);
    configure(CFG_UNPACK1_CONTEXTS, UNPACK_UNCOMPRESSED);
}

static void configure_convolution(const volatile lns_bh_convolution *c) {
    const uint32_t flags = c->flags;
    const uint32_t format = flags & LNS_BH_FLOAT32 ? FORMAT_FLOAT32 : FORMAT_BFLOAT16;
    const uint32_t row_bytes = flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    configure(CFG_ALU_FORMATS, format << ALU_DST_FORMAT_SHIFT | ALU_DST_FLOAT32 | ALU_SFPU_FLOAT32);
    configure(CFG_RELU, flags & LNS_BH_RELU ? RELU_AT_ZERO : 0);
    configure(CFG_PACK_STRIDES_XY, row_bytes << 16);
    configure(CFG_PACK_FORMATS, PACK_UNCOMPRESSED | format << PACK_OUT_FORMAT_SHIFT | format << PACK_IN_FORMAT_SHIFT);
    configure(CFG_UNPACK0_ADDRESS, c->weights / 16 - 1);
    configure(CFG_UNPACK0_X_SIZE, c->blocks * LNS_BH_CHANNELS * LNS_BH_CHANNELS);
    configure(CFG_UNPACK1_ADDRESS, c->input / 16 - 1);
    configure(CFG_UNPACK1_TILE_YZ, c->plane_width | c->plane_height << TILE_Z_SHIFT);
    configure(CFG_UNPACK1_OUT_STRIDES_ZW, c->in_run * LNS_BH_PIXEL_BYTES);
    /* The last word has been written when it can be read back: loads and stores of one region stay in order. */
    (void)word_at(CONFIGURATION)[CFG_UNPACK1_OUT_STRIDES_ZW];
    fence();
}

static void wait_for_threads(uint32_t value) {
    for (int thread = 0; thread < 3; thread++)
        while (load_fresh(&control()->thread[thread].done) != value)
            ;
}

/* Has the threads begin something. */
static void begin(uint32_t kind, uint32_t at) {
    const uint32_t start = control()->start + 1;
    control()->kind = kind;
    control()->at = at;
    fence();
    control()->start = start;
}

/* Waits until they have done it. */
static void join(void) {
    wait_for_threads(control()->start);
}

/* ---- Steps of this core --------------------------------------------------------------------------- */

/* All rows of a plane, `size` bytes of each; a row longer than a request is cut into parts. */
static void copy_rows(noc *n, uint32_t kind, const volatile lns_bh_copy *c, uint32_t local, uint64_t remote,
                      uint32_t size) {
    const uint32_t rows = c->rows, local_row = c->local_row, remote_row = c->remote_row, tile = c->remote_tile;
    if (kind == LNS_BH_FETCH) {
        noc_begin_rows(n, NOC_READ, tile, n->own_tile, size);
        n->reads += rows;
    } else {
        noc_begin_rows(n, NOC_WRITE, n->own_tile, tile, size);
        n->writes += rows;
    }
    for (uint32_t row = 0; row < rows; row++, local += local_row, remote += remote_row) {
        if (kind == LNS_BH_FETCH)
            noc_row(n, remote, local);
        else
            noc_row(n, local, remote);
    }
}

static void copy(noc *n, uint32_t kind, const volatile lns_bh_copy *c) {
    const uint32_t size = c->size, planes = c->planes;
    const uint64_t remote = (uint64_t)c->remote_high << 32 | c->remote_low;
    for (uint32_t plane = 0; plane < planes; plane++)
        for (uint32_t part = 0; part < size; part += NOC_LARGEST)
            copy_rows(n, kind, c, c->local + plane * c->local_plane + part, remote + plane * c->remote_plane + part,
                      size - part < NOC_LARGEST ? size - part : NOC_LARGEST);
}

static void copy_all(noc *n, uint32_t kind, const volatile lns_bh_copies *list) {
    const volatile lns_bh_copy *items = (const volatile lns_bh_copy *)list->items;
    const uint32_t wanted = list->wanted;
    if (wanted != 0 && (wanted & ((const volatile lns_bh_rules *)LNS_BH_RULES)->wanted) == 0)
        return;
    for (uint32_t i = 0, count = list->count; i < count; i++)
        copy(n, kind, &items[i]);
}

static void send_lists(noc *n, const volatile lns_bh_suppression *s) {
    const uint64_t host = (uint64_t)s->host_high << 32 | s->host_low;
    const uint32_t tile = s->host_tile, size = s->list_size;
    for (uint32_t i = 0, list = s->lists; i < LNS_BH_LISTS; i++, list += size) {
        const uint32_t bytes = LNS_BH_LIST_HEADER + load_fresh(word_at(list)) * sizeof(lns_bh_keypoint);
        noc_begin_rows(n, NOC_WRITE, n->own_tile, tile, (bytes + 63) / 64 * 64);
        noc_row(n, list, host + i * size);
        n->writes++;
    }
}

static void fill(const volatile lns_bh_fill *f) {
    const uint32_t value = f->value, words = f->words;
    for (uint32_t plane = 0; plane < f->planes; plane++)
        for (uint32_t row = 0; row < f->rows; row++) {
            volatile uint32_t *word = word_at(f->address + plane * f->plane + row * f->row);
#pragma GCC unroll 8
            for (uint32_t i = 0; i < words; i++)
                word[i] = value;
        }
}

static void fill_all(const volatile lns_bh_fills *list) {
    const volatile lns_bh_fill *items = (const volatile lns_bh_fill *)list->items;
    for (uint32_t i = 0, count = list->count; i < count; i++)
        fill(&items[i]);
    fence();
}

static void signal(noc *n, const volatile lns_bh_signal *s) {
    const uint32_t counter = s->counter;
    for (uint32_t i = 0, count = s->count; i < count; i++)
        noc_increment(n, (noc_place){counter, s->tiles[i]}, LNS_BH_SCRATCH);
}

static void wait_for_count(uint32_t at, uint32_t amount) {
    volatile lns_bh_counter *counter = (volatile lns_bh_counter *)at;
    const uint32_t wanted = counter->used + amount;
    while ((int32_t)(load_fresh(&counter->count) - wanted) < 0)
        ;
    counter->used = wanted;
}

/* Tells all tiles, this one too, that one more piece has come. Earlier multicasts have been acknowledged. */
static void announce(noc *n, const volatile lns_bh_stream *s) {
    volatile lns_bh_counter *ready = (volatile lns_bh_counter *)s->ready;
    const uint32_t others = s->tiles - 1;
    ready->count = load_fresh(&ready->count) + 1;
    fence();
    if (others > 0)
        noc_multicast(n, s->ready, s->rectangle, others, sizeof ready->count);
}

/* Two pieces are on their way from DRAM, with a tag for each, while the one before goes to the other tiles. */
static void stream(noc *n, const volatile lns_bh_stream *s) {
    const uint32_t at = s->at, size = s->size, others = s->tiles - 1, pieces = (size + NOC_LARGEST - 1) / NOC_LARGEST;
    wait_for_count(s->free, s->tiles);
    for (uint32_t piece = 0; piece <= pieces; piece++) {
        const uint32_t offset = piece * NOC_LARGEST, before = offset - NOC_LARGEST, rest = size - offset;
        if (piece < pieces)
            noc_read_tagged(n, (noc_place){s->dram + offset, s->dram_tile}, at + offset,
                            rest < NOC_LARGEST ? rest : NOC_LARGEST, 1 + piece % 2);
        if (piece == 0)
            continue;
        noc_wait_for_tag(n, 1 + (piece - 1) % 2);
        if (others > 0)
            noc_multicast(n, at + before, s->rectangle, others,
                          size - before < NOC_LARGEST ? size - before : NOC_LARGEST);
    }
    noc_land(n);
    announce(n, s);
}

/* `n` is for what other tiles and DRAM have, and `away` for what leaves this tile: what is on a slow way to the host
 * holds up nothing else. Returns 1 + the index of a step of unknown kind, or 0. */
static uint32_t run_program(noc *n, noc *away, uint32_t address) {
    const volatile lns_bh_step *step = (const volatile lns_bh_step *)address;
    fence(); /* the host may have written a new program */
    for (uint32_t i = 0;; i++) {
        const uint32_t kind = step[i].kind, at = step[i].at;
        switch (kind) {
        case LNS_BH_END:
            return 0;
        case LNS_BH_CONVOLUTION:
            configure_convolution((const volatile lns_bh_convolution *)at);
            begin(kind, at);
            join();
            break;
        case LNS_BH_BEGIN:
            configure_convolution((const volatile lns_bh_convolution *)at);
            begin(LNS_BH_CONVOLUTION, at);
            break;
        case LNS_BH_JOIN:
            join();
            break;
        case LNS_BH_IMAGE:
        case LNS_BH_SCORES:
        case LNS_BH_KEYPOINTS:
            begin(kind, at);
            do_part(kind, at, WORKER_B);
            fence();
            join();
            break;
        case LNS_BH_FETCH:
            copy_all(n, kind, (const volatile lns_bh_copies *)at);
            break;
        case LNS_BH_SEND:
            copy_all(away, kind, (const volatile lns_bh_copies *)at);
            break;
        case LNS_BH_ARRIVE:
            noc_land(n);
            break;
        case LNS_BH_LAND:
            noc_land(n);
            noc_land(away);
            break;
        case LNS_BH_FILL:
            fill_all((const volatile lns_bh_fills *)at);
            break;
        case LNS_BH_SIGNAL:
            signal(n, (const volatile lns_bh_signal *)at);
            break;
        case LNS_BH_WAIT:
            wait_for_count(((const volatile lns_bh_wait *)at)->counter, ((const volatile lns_bh_wait *)at)->amount);
            break;
        case LNS_BH_STREAM:
            stream(n, (const volatile lns_bh_stream *)at);
            break;
        case LNS_BH_SEND_LISTS:
            send_lists(away, (const volatile lns_bh_suppression *)at);
            break;
        default:
            return i + 1;
        }
    }
}

/* ---- Start ---------------------------------------------------------------------------------------- */

/* Clock gates and instruction caches as tt-metal's firmware of this core sets them (tt_metal/hw/firmware/src/brisc.cc).
 */
static void start_threads(void) {
    *word_at(DST_CLOCK_GATES) = 0;
    *word_at(TDMA_CLOCK_GATES) = 0x3F;
    configure(CFG_INVALIDATE_CODE, 0x1F);
    for (int thread = 0; thread < 3; thread++)
        control()->thread[thread].done = UINT32_MAX;
    control()->start = 0;
    word_at(TRISC0_RESET_PC)[0] = LNS_BH_CODE_UNPACK;
    word_at(TRISC0_RESET_PC)[1] = LNS_BH_CODE_MATH;
    word_at(TRISC0_RESET_PC)[2] = LNS_BH_CODE_PACK;
    *word_at(TRISC_RESET_PC_ENABLE) = 7;
    fence();
    *word_at(SOFT_RESET) = RESET_NC;
    wait_for_threads(0);
}

int main(void) {
    noc n, away;
    configure_once();
    start_threads();
    noc_begin(&n, NOC_REGISTERS);
    noc_begin(&away, NOC1_REGISTERS);
    uint32_t done = control()->finished;
    control()->ready = LNS_BH_READY;
    for (;;) {
        const uint32_t request = load_fresh(&control()->request);
        if (request == done)
            continue;
        control()->bad_step = run_program(&n, &away, control()->program);
        fence();
        done = request;
        control()->finished = done;
        fence();
    }
}
