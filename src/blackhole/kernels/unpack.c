/* SPDX-License-Identifier: Apache-2.0 */
/* Thread T0: brings weights to SrcA and pixels to SrcB, a step of 16 input channels at a time. The unpackers wait by
 * themselves for a free bank of the two that each has. */
#include "serve.h"

/* What is read of a convolution in the inner loops, in the core's own memory. */
typedef struct operands {
    uint32_t planes, taps, bias, runs;
    uint32_t tap[9];
    uint32_t in[LNS_BH_RUNS]; /* instructions that select the first pixel of a run */
} operands;

#define SELECT_PIXEL SETADC(FOR_UNPACK1, 0, DIMENSION_Y, 0)

/* Pixels of one step: runs of plane `plane`, each `offset` pixels after where it begins. */
static inline __attribute__((always_inline)) void unpack_pixels(const operands *o, uint32_t runs, uint32_t plane,
                                                                uint32_t offset) {
    push(SETADC(FOR_UNPACK1, 0, DIMENSION_W, plane));
    ISSUE(CLEARADCZW(FOR_UNPACK1, ADC_CHANNEL1_Z));
#pragma GCC unroll 8
    for (uint32_t run = 0; run + 1 < runs; run++) {
        push(o->in[run] + offset);
        ISSUE(UNPACR(1, 1, 0));
    }
    push(o->in[runs - 1] + offset);
    ISSUE(UNPACR(1, 0, 1));
}

static inline void unpack_weights(uint32_t step) {
    push(SETADC(FOR_UNPACK0, 0, DIMENSION_Y, step));
    ISSUE(UNPACR(0, 0, 1));
}

/* All taps and planes of a job. Returns the number of the first weights after those. `runs` is a constant: with up to
 * eight of them in a step, a loop over them would take longer than the multiplications. */
static inline __attribute__((always_inline)) uint32_t unpack_taps(const operands *o, uint32_t runs, uint32_t step) {
    const uint32_t taps = o->taps, planes = o->planes;
    for (uint32_t tap = 0; tap < taps; tap++) {
        const uint32_t offset = o->tap[tap];
        for (uint32_t plane = 0; plane < planes; plane++) {
            unpack_weights(step++);
            unpack_pixels(o, runs, plane, offset);
        }
    }
    return step;
}

/* The runs that the network has, and any other number. */
static uint32_t unpack_job(const operands *o, uint32_t step) {
    switch (o->runs) {
    case 1:
        return unpack_taps(o, 1, step);
    case 2:
        return unpack_taps(o, 2, step);
    case 4:
        return unpack_taps(o, 4, step);
    case 5:
        return unpack_taps(o, 5, step);
    default:
        return unpack_taps(o, o->runs, step);
    }
}

/* The plane of ones: all runs are its first pixels. */
static void unpack_ones(const operands *o, uint32_t step) {
    unpack_weights(step);
    push(SETADC(FOR_UNPACK1, 0, DIMENSION_W, o->planes));
    ISSUE(CLEARADCZW(FOR_UNPACK1, ADC_CHANNEL1_Z));
    push(SELECT_PIXEL);
    for (uint32_t run = 1; run < o->runs; run++)
        ISSUE(UNPACR(1, 1, 0));
    ISSUE(UNPACR(1, 0, 1));
}

static void unpack(const volatile lns_bh_convolution *c) {
    operands o;
    o.planes = c->input_planes;
    o.taps = c->taps;
    o.bias = c->bias;
    o.runs = c->in_runs;
    for (uint32_t tap = 0; tap < o.taps; tap++)
        o.tap[tap] = c->tap[tap];
    const uint32_t blocks = c->blocks, run = c->in_run, groups = c->groups, job_count = c->job_count;
    const volatile lns_bh_job *jobs = (const volatile lns_bh_job *)c->jobs;
    push(SETADCXX(FOR_UNPACK0, 0, blocks * LNS_BH_CHANNELS * LNS_BH_CHANNELS - 1));
    push(SETADCXX(FOR_UNPACK1, 0, run * LNS_BH_CHANNELS - 1));
    uint32_t first_step = 0, next_step = 0;
    for (uint32_t group = 0; group < groups; group++, first_step = next_step)
        for (uint32_t job = 0; job < job_count; job++) {
            for (uint32_t i = 0; i < o.runs; i++)
                o.in[i] = SELECT_PIXEL + jobs[job].in[i];
            next_step = unpack_job(&o, first_step);
            if (o.bias)
                unpack_ones(&o, next_step++);
        }
}

int main(void) {
    stop_gathering();
    ISSUE(SETC16(THREAD_STATE_ID, 0));
    ISSUE(SETC16(THREAD_SRCA_SET, SRCA_BY_ADDRESS));
    ISSUE(SETC16(THREAD_UNPACK_CONTEXT, 0));
    ISSUE(CLEARADCXY(FOR_UNPACK0 | FOR_UNPACK1, ADC_ALL));
    ISSUE(CLEARADCZW(FOR_UNPACK0 | FOR_UNPACK1, ADC_ALL));
    wait_for_thread();
    serve(0, unpack);
}
