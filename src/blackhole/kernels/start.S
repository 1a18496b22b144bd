/* SPDX-License-Identifier: Apache-2.0 */
/* Where a core begins: its stack is the local memory of the core. Nothing is initialised, there is no data section. */
    .section .text.start, "ax"
    .globl _start
_start:
    lui sp, %hi(STACK_END)
    j main
