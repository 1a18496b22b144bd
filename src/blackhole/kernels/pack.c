/* SPDX-License-Identifier: Apache-2.0 */
/* Thread T2: takes a half of Dst when T1 has finished it, pools and rounds there with the vector unit, packs the rows
 * to L1 and clears the half. T1 computes in the other half meanwhile. */
#include "serve.h"

/* Address modes of the vector unit, which moves over Dst: stay; next columns or rows; and three for pooling. */
enum { STAY, NEXT_LANES, NEXT_FOUR, NEXT_COLUMNS, NEXT_BLOCK, MODES };
/* And of the packer: next 4 rows. */
enum { NEXT_ROWS };

/* Registers of the scalar unit that hold what is written to configuration words. */
enum { GPR_DST_OFFSET = 8, GPR_ADDRESS = 9 };

/* Half of what the last of 7 bits of a mantissa is worth, less the half of a bfloat16 bit that the packer adds when it
 * rounds: both together round to 7 bits. */
#define ROUNDING 0x8000u

/* Places in the replay buffer. */
#define ROUND_FIRST 0
#define ROUND_GROUPS 4 /* groups of 32 lanes at a time: 8 rows */
#define ROUND_COUNT (3 * ROUND_GROUPS)
#define POOL_FIRST 12
#define POOL_COUNT 17

static void record_rounding(void) {
    ISSUE(REPLAY_RECORD(ROUND_FIRST, ROUND_COUNT));
    for (int i = 0; i < ROUND_GROUPS; i++) {
        ISSUE(SFPLOAD(0, STAY, 0));
        ISSUE(SFPIADD(0, 7));
        ISSUE(SFPSTORE(0, NEXT_LANES, 0));
    }
}

/* Pools 16 pixels of the upper row and the 16 below: 4 groups of 4 pixels, 8 apart. Transposed, register n holds pixels
 * n, n + 8, n + 16 and n + 24; so the larger of registers 0 and 1 are output pixels 0, 4, 8 and 12, and those of 2 and
 * 3 output pixels 1, 5, 9 and 13. They go to rows 0 and 8, whose pixels have been read. Once more, 4 rows further,
 * gives output pixels 2, 6, 10, 14 and 3, 7, 11, 15. */
static void record_pooling(void) {
    ISSUE(REPLAY_RECORD(POOL_FIRST, POOL_COUNT));
    ISSUE(SFPLOAD(0, STAY, 0));
    ISSUE(SFPLOAD(1, STAY, 8));
    ISSUE(SFPLOAD(2, STAY, 16));
    ISSUE(SFPLOAD(3, STAY, 24));
    ISSUE(SFPLOAD(4, STAY, 32));
    ISSUE(SFPLOAD(5, STAY, 40));
    ISSUE(SFPLOAD(6, STAY, 48));
    ISSUE(SFPLOAD(7, STAY, 56));
    ISSUE(SFPMINMAX(4, 0));
    ISSUE(SFPMINMAX(5, 1));
    ISSUE(SFPMINMAX(6, 2));
    ISSUE(SFPMINMAX(7, 3));
    ISSUE(SFPTRANSP);
    ISSUE(SFPMINMAX(0, 1));
    ISSUE(SFPMINMAX(2, 3));
    ISSUE(SFPSTORE(1, STAY, 0));
    ISSUE(SFPSTORE(3, NEXT_FOUR, 8));
}

/* The address of a row that lies `rows` above the current one: rows count modulo 1024. */
#define ABOVE(rows) (1024u - (rows))

/* The second half of pooling a block: 64 pixels have become 16, of which registers 1 and 3 hold some, and rows 0 and 8
 * the others; the current row is 8. `next` is the mode that leads to the odd columns or to the next block. */
#define STORE_POOLED(next, rounding)                                                                                   \
    do {                                                                                                               \
        ISSUE(SFPMOV(2, 1));                                                                                           \
        ISSUE(SFPLOAD(0, STAY, ABOVE(8)));                                                                             \
        ISSUE(SFPLOAD(1, STAY, 0));                                                                                    \
        ISSUE(SFPTRANSP);                /* now register n holds output pixels 4n..4n+3 */                             \
        push(SFPLOADI_LOW(7, rounding)); /* not earlier: registers 4 to 7 are transposed as well */                    \
        for (int i = 0; i < 4; i++)                                                                                    \
            push(SFPIADD(i, 7));                                                                                       \
        ISSUE(SFPSTORE(0, STAY, ABOVE(8)));                                                                            \
        ISSUE(SFPSTORE(1, STAY, ABOVE(4)));                                                                            \
        ISSUE(SFPSTORE(2, STAY, 0));                                                                                   \
        ISSUE(SFPSTORE(3, next, 4));                                                                                   \
    } while (0)

/* Leaves the 16 output pixels of each block in its first rows, with `rounding` added. */
static void pool(uint32_t blocks, uint32_t rounding) {
    for (uint32_t column = 0; column < 2 * blocks; column++) {
        ISSUE(REPLAY_PLAY(POOL_FIRST, POOL_COUNT));
        ISSUE(REPLAY_PLAY(POOL_FIRST, POOL_COUNT));
        if (column % 2 == 0)
            STORE_POOLED(NEXT_COLUMNS, rounding);
        else
            STORE_POOLED(NEXT_BLOCK, rounding);
    }
    ISSUE(SETRWC_CLEAR(0));
}

/* Adds to all rows what makes the packer round to 7 bits. */
static void round_rows(uint32_t rows) {
    ISSUE(SFPLOADI_LOW(7, ROUNDING));
    for (uint32_t row = 0; row < rows; row += 2 * ROUND_GROUPS)
        ISSUE(REPLAY_PLAY(ROUND_FIRST, ROUND_COUNT));
    ISSUE(SETRWC_CLEAR(0));
}

/* Packs `rows` rows of Dst from row `row` of the half on to `address`. */
static void pack_rows(uint32_t row, uint32_t rows, uint32_t address) {
    /* tt-llk (cpack_common.h, program_packer_destination) sets bit 31 whenever it writes this word. */
    const uint32_t value = (address / 16 - 1) | 1u << 31;
    push(SETDMAREG_LOW(GPR_ADDRESS, value));
    push(SETDMAREG_HIGH(GPR_ADDRESS, value));
    push(SETADC(FOR_PACK, 0, DIMENSION_Y, row));
    ISSUE(STALLWAIT(HOLD_CONFIGURATION | HOLD_PACK, UNTIL_SCALAR | UNTIL_PACK));
    ISSUE(WRCFG(CFG_PACK_ADDRESS, GPR_ADDRESS));
    ISSUE(DMANOP);
    ISSUE(DMANOP);
    for (; rows > 4; rows -= 4)
        ISSUE(PACR(NEXT_ROWS, 0));
    ISSUE(PACR(NEXT_ROWS, 1));
}

static void select_half(uint32_t half) {
    const uint32_t row = half * DST_HALF_ROWS;
    ISSUE(STALLWAIT(HOLD_CONFIGURATION, UNTIL_PACK | UNTIL_SFPU));
    push(SETC16(THREAD_DST_OFFSET, row));
    push(SETDMAREG_LOW(GPR_DST_OFFSET, row));
    push(SETDMAREG_HIGH(GPR_DST_OFFSET, row));
    ISSUE(STALLWAIT(HOLD_CONFIGURATION, UNTIL_SCALAR));
    ISSUE(WRCFG(CFG_PACK_DST_OFFSET, GPR_DST_OFFSET));
    ISSUE(DMANOP);
    ISSUE(DMANOP);
}

/* Dst may be computed anew once it has been packed and cleared. */
static void release_half(uint32_t half) {
    ISSUE(STALLWAIT(HOLD_MATH | HOLD_SYNC, UNTIL_PACK));
    push(ZEROACC_HALF(half));
    ISSUE(STALLWAIT(HOLD_SYNC, UNTIL_MATH));
    ISSUE(SEMGET(SEM_COMPUTED));
}

static void pack(const volatile lns_bh_convolution *c) {
    const uint32_t flags = c->flags, blocks = c->blocks, groups = c->groups, job_count = c->job_count;
    const uint32_t rows = c->in_run * c->in_runs; /* of Dst for each block */
    const uint32_t out_run = c->out_run, out_runs = c->out_runs, stride = c->output_stride;
    const uint32_t pixel_bytes = flags & LNS_BH_FLOAT32 ? LNS_BH_PIXEL_BYTES_FLOAT32 : LNS_BH_PIXEL_BYTES;
    const volatile lns_bh_job *jobs = (const volatile lns_bh_job *)c->jobs;
    uint32_t output = c->output, half = 0;
    for (uint32_t group = 0; group < groups; group++, output += blocks * stride)
        for (uint32_t job = 0; job < job_count; job++, half ^= 1) {
            ISSUE(SEMWAIT(HOLD_MOVERS | HOLD_MATH | HOLD_SFPU | HOLD_CONFIGURATION, SEM_COMPUTED, SEM_ZERO));
            select_half(half);
            if (flags & LNS_BH_POOL)
                pool(blocks, flags & LNS_BH_ROUND ? ROUNDING : 0);
            else if (flags & LNS_BH_ROUND)
                round_rows(rows * blocks);
            ISSUE(STALLWAIT(HOLD_PACK | HOLD_MOVERS, UNTIL_SFPU));
            for (uint32_t run = 0; run < out_runs; run++)
                for (uint32_t block = 0; block < blocks; block++)
                    pack_rows(block * rows + run * out_run, out_run,
                              output + block * stride + jobs[job].out[run] * pixel_bytes);
            release_half(half);
        }
}

static void set_mode(uint32_t mode, uint32_t rows) {
    push(SETC16(THREAD_MODE_AB(mode), 0));
    push(SETC16(THREAD_MODE_DST(mode), rows));
    push(SETC16(THREAD_MODE_BIAS(mode), 0));
}

int main(void) {
    stop_gathering();
    ISSUE(SETC16(THREAD_STATE_ID, 0));
    set_mode(STAY, 0);
    set_mode(NEXT_LANES, 2);
    set_mode(NEXT_FOUR, 4);
    set_mode(NEXT_COLUMNS, ABOVE(6)); /* from row 8 to row 0, odd columns */
    set_mode(NEXT_BLOCK, LNS_BH_JOB_PIXELS - 8 - 2);
    ISSUE(SETC16(THREAD_MODE_PACK(NEXT_ROWS), 4));
    ISSUE(CLEARADCXY(FOR_PACK, ADC_ALL));
    ISSUE(CLEARADCZW(FOR_PACK, ADC_ALL));
    ISSUE(SETADCXX(FOR_PACK, 0, LNS_BH_CHANNELS - 1));
    ISSUE(SETRWC_CLEAR(0));
    ISSUE(SFPENABLE_ALL);
    ISSUE(SFPPLAIN_LANES);
    record_rounding();
    record_pooling();
    wait_for_thread();
    serve(2, pack);
}
