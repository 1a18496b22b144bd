/* SPDX-License-Identifier: Apache-2.0 */
/* Thread T1: multiplies. One step of 16 input channels is a MVMUL for each 8 pixels and 16 output channels, which are
 * recorded once for a convolution and played for each phase of a step. */
#include "serve.h"

/* Address modes: go on to the next 8 pixels; after the last pixels, to the next 16 output channels; after the last of
 * all, back to the beginning in the next phase. */
enum { NEXT_PIXELS, NEXT_BLOCK, NEXT_PHASE, MODES };

static void record_step(uint32_t eights, uint32_t blocks) {
    push(REPLAY_RECORD(0, eights * blocks));
    for (uint32_t block = 1; block <= blocks; block++) {
        for (uint32_t i = 1; i < eights; i++)
            push(MVMUL(NEXT_PIXELS));
        push(MVMUL(block < blocks ? NEXT_BLOCK : NEXT_PHASE));
    }
}

static void multiply(const volatile lns_bh_convolution *c) {
    const uint32_t eights = c->in_run * c->in_runs / 8, blocks = c->blocks, phases = c->phases;
    const uint32_t steps = c->taps * c->input_planes + c->bias, jobs = c->groups * c->job_count;
    const uint32_t play = REPLAY_PLAY(0, eights * blocks);
    record_step(eights, blocks);
    for (uint32_t job = 0; job < jobs; job++) {
        ISSUE(SEMWAIT(HOLD_MATH | HOLD_SFPU | HOLD_SYNC | HOLD_CONFIGURATION, SEM_COMPUTED, SEM_FULL));
        /* The row where Dst begins may change when the multiplications before are done (tt-llk cmath_common.h,
         * dest_section_flip). */
        ISSUE(STALLWAIT(HOLD_CONFIGURATION, UNTIL_MATH | UNTIL_SFPU));
        push(SETC16(THREAD_DST_OFFSET, job % DST_HALVES * DST_HALF_ROWS));
        for (uint32_t step = 0; step < steps; step++) {
            for (uint32_t phase = 0; phase < phases; phase++)
                push(play);
            ISSUE(SETRWC_CLEAR(3));
        }
        ISSUE(STALLWAIT(HOLD_SYNC, UNTIL_MATH));
        ISSUE(SEMPOST(SEM_COMPUTED));
    }
}

int main(void) {
    stop_gathering();
    ISSUE(SETC16(THREAD_STATE_ID, 0));
    ISSUE(SETC16(THREAD_MODE_AB(NEXT_PIXELS), 8u << MODE_B_SHIFT));
    ISSUE(SETC16(THREAD_MODE_DST(NEXT_PIXELS), 8));
    ISSUE(SETC16(THREAD_MODE_AB(NEXT_BLOCK), 16 | MODE_B_CLEAR));
    ISSUE(SETC16(THREAD_MODE_DST(NEXT_BLOCK), 8));
    ISSUE(SETC16(THREAD_MODE_AB(NEXT_PHASE), MODE_A_CLEAR | MODE_B_CLEAR));
    ISSUE(SETC16(THREAD_MODE_DST(NEXT_PHASE), MODE_DST_CLEAR | MODE_NEXT_PHASE));
    for (uint32_t mode = 0; mode < MODES; mode++)
        push(SETC16(THREAD_MODE_BIAS(mode), 0));
    ISSUE(SETC16(THREAD_DST_OFFSET, 0));
    ISSUE(SETC16(THREAD_SRCA_FORMAT, 0));
    ISSUE(SETC16(THREAD_SRCB_FORMAT, 0));
    ISSUE(SETC16(THREAD_CLEAR_VALID, 0));
    ISSUE(SEMINIT(SEM_COMPUTED, 0, DST_HALVES));
    ISSUE(SETRWC_CLEAR(0));
    ISSUE(ZEROACC_ALL);
    wait_for_thread();
    serve(1, multiply);
}
