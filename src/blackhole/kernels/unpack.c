/* SPDX-License-Identifier: Apache-2.0 */
/* Thread T0: brings weights to SrcA and pixels to SrcB, a step of 16 input channels at a time. The unpackers wait by
 * themselves for a free bank of the two that each has. */
#include "serve.h"

#include <stddef.h>

/* What is read of a convolution in the inner loops, in the core's own memory. */
typedef struct operands {
    uint32_t planes, taps, bias, runs;
    uint32_t tap[9];
    uint32_t in[LNS_BH_RUNS];
} operands;

/* Pixels of one step: runs of plane `plane`, each `offset` pixels after where it begins; with `in` NULL, `offset`
 * pixels after the begin of the plane. */
static inline void unpack_pixels(uint32_t runs, const uint32_t *in, uint32_t plane, uint32_t offset) {
    push(SETADC(FOR_UNPACK1, 0, DIMENSION_W, plane));
    ISSUE(CLEARADCZW(FOR_UNPACK1, ADC_CHANNEL1_Z));
    uint32_t run = 0;
    for (; run + 1 < runs; run++) {
        push(SETADC(FOR_UNPACK1, 0, DIMENSION_Y, offset + (in != NULL ? in[run] : 0)));
        ISSUE(UNPACR(1, 1, 0));
    }
    push(SETADC(FOR_UNPACK1, 0, DIMENSION_Y, offset + (in != NULL ? in[run] : 0)));
    ISSUE(UNPACR(1, 0, 1));
}

static inline void unpack_weights(uint32_t step) {
    push(SETADC(FOR_UNPACK0, 0, DIMENSION_Y, step));
    ISSUE(UNPACR(0, 0, 1));
}

/* Returns the number of the first weights after those of this group. */
static uint32_t unpack_job(const operands *o, uint32_t step) {
    for (uint32_t tap = 0; tap < o->taps; tap++)
        for (uint32_t plane = 0; plane < o->planes; plane++) {
            unpack_weights(step++);
            unpack_pixels(o->runs, o->in, plane, o->tap[tap]);
        }
    if (o->bias) {
        unpack_weights(step++);
        unpack_pixels(o->runs, NULL, o->planes, 0);
    }
    return step;
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
    for (uint32_t group = 0; group < groups; group++) {
        for (uint32_t job = 0; job < job_count; job++) {
            for (uint32_t i = 0; i < o.runs; i++)
                o.in[i] = jobs[job].in[i];
            next_step = unpack_job(&o, first_step);
        }
        first_step = next_step;
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
