/* SPDX-License-Identifier: Apache-2.0 */
/* What the RISC-V cores of a tile need to reach L1, registers and the Tensix units. */
#ifndef LENSING_BLACKHOLE_CORE_H
#define LENSING_BLACKHOLE_CORE_H

#include "../program.h"
#include "tensix.h"

static inline volatile uint32_t *word_at(uint32_t address) {
    return (volatile uint32_t *)address;
}

/* Earlier stores have left this core, and later loads see what others wrote to L1: a fence empties the cache of four
 * lines that a core has, which is not coherent (ISA: BabyRISCV/MemoryOrdering.md). */
static inline void fence(void) {
    __asm__ volatile("fence" ::: "memory");
}

static inline uint32_t load_fresh(const volatile uint32_t *word) {
    fence();
    return *word;
}

/* Gives a Tensix instruction with operands of run time to this core's thread; waits while its queue is full. */
static inline void push(uint32_t instruction) {
    *word_at(INSTRUCTION_FIFO) = instruction;
}

/* The same for a constant one. The core takes an instruction word whose low bits are not 11 for a Tensix instruction,
 * rotated left by 2 (ISA: BabyRISCV/PushTensixInstruction.md), so it costs one instruction and no register. */
#define ISSUE(instruction)                                                                                             \
    __asm__ volatile(".word %0" ::"i"((int)((uint32_t)(instruction) << 2 | (uint32_t)(instruction) >> 30)))

/* Returns when all instructions of this core's thread are done. */
static inline void wait_for_thread(void) {
    *word_at(THREAD_SYNC) = 0;
    const uint32_t value = *word_at(THREAD_SYNC);
    __asm__ volatile("and x0, x0, %0" ::"r"(value)); /* the core goes on before a load has returned, until it is used */
}

static inline volatile lns_bh_control *control(void) {
    return (volatile lns_bh_control *)LNS_BH_CONTROL;
}

/* Bits of CSR cfg0 (ISA: BabyRISCV/CSRs.md). */
#define CFG0_NO_BRANCH_PREDICTION 0x00002
#define CFG0_NO_GATHERING 0x40000 /* DisTriscCache */

/* Adjacent Tensix instructions shall not be gathered into one store: a REPLAY that records hangs with it (tt-metal
 * issue 16439). tt-metal turns branch prediction off around the change, so that nothing is in flight; so does this. */
static inline void stop_gathering(void) {
    __asm__ volatile(
        "csrs 0x7c0, %0\n fence\n csrs 0x7c0, %1\n fence\n csrc 0x7c0, %0\n fence" ::"r"(CFG0_NO_BRANCH_PREDICTION),
        "r"(CFG0_NO_GATHERING)
        : "memory");
}

/* The one semaphore: halves of Dst that are computed and not yet packed. 1 is what tt-llk uses for it (MATH_PACK). */
#define SEM_COMPUTED 1
#define DST_HALVES 2
/* Row of Dst where its second half begins, whatever the width of numbers (tt-llk: DEST_REGISTER_HALF_SIZE). */
#define DST_HALF_ROWS 512u

#endif
