/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions and registers of a Tensix tile of Blackhole, as far as they are used.
 *
 * Sources. ISA: github.com/tenstorrent/tt-isa-documentation, BlackholeA0/TensixTile, and the pages of WormholeB0 that
 * it shares; a page has the name of the instruction. Encodings: the field lists of tt-llk (tt_llk_blackhole/common/inc/
 * ckernel_ops.h) and of ttsim (data/bh/tensix_isa.json), which agree. Registers: names and positions of tt-metal's
 * cfg_defines.h for Blackhole, which are also in ttsim's data/bh/tensix_regs.json. */
#ifndef LENSING_BLACKHOLE_TENSIX_H
#define LENSING_BLACKHOLE_TENSIX_H

#include <stdint.h>

/* ---- Memory-mapped registers (ISA: BabyRISCV/README.md, SoftReset.md) ------------------------------ */

#define TDMA_CLOCK_GATES 0xFFB11024u      /* RISCV_TDMA_REG_CLK_GATE_EN */
#define SOFT_RESET 0xFFB121B0u            /* RISCV_DEBUG_REG_SOFT_RESET_0 */
#define TRISC0_RESET_PC 0xFFB12228u       /* RISCV_DEBUG_REG_TRISC0_RESET_PC; T1 and T2 follow */
#define TRISC_RESET_PC_ENABLE 0xFFB12234u /* RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE: a bit for each thread */
#define DST_CLOCK_GATES 0xFFB12240u       /* RISCV_DEBUG_REG_DEST_CG_CTRL */
#define INSTRUCTION_FIFO 0xFFE40000u      /* INSTRN_BUF_BASE */
#define THREAD_SYNC 0xFFE80004u           /* PC_BUF_BASE + 4: a load returns when the thread's instructions are done */
#define CONFIGURATION 0xFFEF0000u         /* TENSIX_CFG_BASE */

/* Bits of SOFT_RESET. */
#define RESET_B (1u << 11)
#define RESET_T0_T1_T2 (7u << 12)
#define RESET_NC (1u << 18)

/* ---- Data formats (ISA: Packers/FormatConversion.md, UNPACR_Regular.md) ----------------------------- */

#define FORMAT_FLOAT32 0u
#define FORMAT_BFLOAT16 5u

/* ---- Configuration words: index, and fields as shifts ----------------------------------------------- */

#define CFG_ALU_OVERRIDES 0 /* ALU_FORMAT_SPEC_REG: 0, formats are those of the units */
#define CFG_ALU_FORMATS 1   /* ALU_ROUNDING_MODE, ALU_FORMAT_SPEC_REG2, ALU_ACC_CTRL */
#define ALU_DST_FORMAT_SHIFT 25
#define ALU_DST_FLOAT32 (1u << 29)  /* ALU_ACC_CTRL_Fp32_enabled: the matrix unit adds in float32 */
#define ALU_SFPU_FLOAT32 (1u << 30) /* ALU_ACC_CTRL_SFPU_Fp32_enabled */
#define CFG_RELU 2                  /* ALU_ACC_CTRL_Zero_Flag, STACC_RELU */
#define RELU_AT_ZERO (1u << 2)      /* STACC_RELU_ApplyRelu: negative values become 0 */
#define CFG_CORE_DST_ACCESS 3       /* RISC_DEST_ACCESS_CTRL, and the scrubber of memory errors */
#define CFG_PACK_STRIDES_XY 12      /* PCK0_ADDR_CTRL_XY_REG_0: bytes, Y in the high half */
#define CFG_PACK_STRIDES_ZW 13      /* PCK0_ADDR_CTRL_ZW_REG_0 */
#define CFG_PACK_OUT_STRIDES_XY 14  /* PCK0_ADDR_CTRL_XY_REG_1 */
#define CFG_PACK_OUT_STRIDES_ZW 15  /* PCK0_ADDR_CTRL_ZW_REG_1 */
#define CFG_PACK_OUT_BASE 17        /* PCK0_ADDR_BASE_REG_1 */
#define CFG_PACK_DST_READ 18        /* PCK_DEST_RD_CTRL */
#define PACK_READ_FLOAT32 1u        /* PCK_DEST_RD_CTRL_Read_32b_data */
#define CFG_PACK_ROW_MAP 20         /* TILE_ROW_SET_MAPPING_0; 21 is _1 */
#define CFG_PACK_EDGE 24            /* PCK_EDGE_OFFSET_SEC0: mask of the columns that are kept; 25 is SEC1 */
#define PACK_EDGE_KEEP_ALL 0xFFFFu
#define CFG_PACK_COUNTERS 28             /* PACK_COUNTERS_SEC0 */
#define PACK_ROWS_PER_PLANE_SHIFT 8      /* pack_reads_per_xy_plane */
#define CFG_UNPACK_FORCED_EXPONENT 50    /* UNP0_FORCED_SHARED_EXP, UNP0_ADD_DEST_ADDR_CNTR */
#define UNPACK_ADD_DESTINATION (1u << 8) /* UNP0_ADD_DEST_ADDR_CNTR */
#define CFG_UNPACK0_OUT_STRIDES_XY 56    /* UNP0_ADDR_CTRL_XY_REG_1 */
#define CFG_UNPACK0_OUT_STRIDES_ZW 57    /* UNP0_ADDR_CTRL_ZW_REG_1 */
#define CFG_UNPACK1_OUT_STRIDES_ZW 59    /* UNP1_ADDR_CTRL_ZW_REG_1: Z in the low half, bytes */
#define CFG_UNPACK0_TILE 64              /* THCON_SEC0_REG0_TileDescriptor, first word */
#define CFG_UNPACK0_TILE_YZ 65           /* second word: Y size, and Z size in the high half */
#define TILE_UNCOMPRESSED (1u << 4)
#define TILE_X_SHIFT 16
#define TILE_Z_SHIFT 16
#define CFG_PACK_SECTIONS 68 /* THCON_SEC0_REG1: row start and exponent section sizes */
#define CFG_PACK_ADDRESS 69  /* THCON_SEC0_REG1_L1_Dest_addr: in 16 bytes, minus 1 */
#define CFG_PACK_FORMATS 70  /* THCON_SEC0_REG1 */
#define PACK_UNCOMPRESSED 1u /* Disable_zero_compress */
#define PACK_OUT_FORMAT_SHIFT 4
#define PACK_IN_FORMAT_SHIFT 8
#define CFG_PACK_DOWNSAMPLE 71 /* THCON_SEC0_REG1: downsampling, accumulation in L1 */
#define CFG_UNPACK0_FORMAT 72  /* THCON_SEC0_REG2 */
#define UNPACK_THROTTLE_SHIFT 4
#define UNPACK_THROTTLE_X4 2u           /* Throttle_mode: 4 x 16 bytes a cycle */
#define CFG_UNPACK0_CONTEXTS 73         /* THCON_SEC0_REG2, second word */
#define UNPACK_UNCOMPRESSED 0x000F000Fu /* Disable_zero_compress_cntx0..7 */
#define CFG_UNPACK0_ADDRESS 76          /* THCON_SEC0_REG3_Base_address: in 16 bytes, minus 1 */
#define CFG_UNPACK0_DESTINATION 84      /* THCON_SEC0_REG5_Dest_cntx0_address: in numbers; SrcA begins at 64 */
#define SRCA_FIRST 64u
#define CFG_UNPACK0_X_SIZE 86 /* THCON_SEC0_REG5_Tile_x_dim_cntx0 */
#define CFG_UNPACK0_OFFSET 92 /* THCON_SEC0_REG7_Offset_address */
#define CFG_UNPACK1_TILE 112  /* THCON_SEC1_REG0_TileDescriptor */
#define CFG_UNPACK1_TILE_YZ 113
#define CFG_UNPACK1_DOWNSAMPLE 119 /* THCON_SEC1_REG1 */
#define CFG_UNPACK1_FORMAT 120     /* THCON_SEC1_REG2 */
#define CFG_UNPACK1_CONTEXTS 121
#define CFG_UNPACK1_ADDRESS 124 /* THCON_SEC1_REG3_Base_address */
#define CFG_PACK_DST_OFFSET 180 /* DEST_TARGET_REG_CFG_PACK_SEC0_Offset: row of Dst */
#define CFG_INVALIDATE_CODE 185 /* RISCV_IC_INVALIDATE_InvalidateAll: a bit for each core */
#define CFG_DST_ACCESS 220      /* DEST_ACCESS_CFG */

/* Words of each thread, written with SETC16. */
#define THREAD_STATE_ID 0            /* CFG_STATE_ID_StateID */
#define THREAD_DST_OFFSET 1          /* DEST_TARGET_REG_CFG_MATH_Offset: row of Dst */
#define THREAD_SRCA_FORMAT 2         /* DISABLE_IMPLIED_SRCA_FMT: 0, the format is that of the unpacker */
#define THREAD_SRCB_FORMAT 3         /* DISABLE_IMPLIED_SRCB_FMT */
#define THREAD_SRCA_SET 5            /* SRCA_SET */
#define SRCA_BY_ADDRESS 4u           /* SRCA_SET_SetOvrdWithAddr */
#define THREAD_CLEAR_VALID 7         /* CLR_DVALID: 0, clearing is not disabled */
#define THREAD_MODE_AB(n) (12 + (n)) /* ADDR_MOD_AB_SECn: how SrcA and SrcB rows move on */
#define MODE_A_CLEAR 0x80u
#define MODE_B_SHIFT 8
#define MODE_B_CLEAR 0x8000u
#define THREAD_MODE_DST(n) (28 + (n)) /* ADDR_MOD_DST_SECn: how the row of Dst and the phase move on */
#define MODE_DST_CLEAR 0x800u
#define MODE_NEXT_PHASE 0x2000u
#define THREAD_MODE_PACK(n) (37 + (n)) /* ADDR_MOD_PACK_SECn: how the packer moves on */
#define THREAD_UNPACK_CONTEXT 41       /* UNPACK_MISC_CFG */
#define THREAD_MODE_BIAS(n) (47 + (n)) /* ADDR_MOD_BIAS_SECn */

/* ---- Instructions: the opcode is the top byte -------------------------------------------------------- */

#define OP(opcode) ((uint32_t)(opcode) << 24)

/* Counters of unpackers and packer: which, and which dimension. */
#define FOR_UNPACK0 1u
#define FOR_UNPACK1 2u
#define FOR_PACK 4u
#define DIMENSION_Y 1u
#define DIMENSION_Z 2u
#define DIMENSION_W 3u

#define SETADC(counters, channel, dimension, value)                                                                    \
    (OP(0x50) | (uint32_t)(counters) << 21 | (uint32_t)(channel) << 20 | (uint32_t)(dimension) << 18 | (value))
/* Sets X of both channels: the first and the last number of a transfer. */
#define SETADCXX(counters, first, last) (OP(0x5E) | (uint32_t)(counters) << 21 | (uint32_t)(last) << 10 | (first))
/* Clears Y, X of both channels, or Z, W of both, or some of them: bits channel 0 low, high, channel 1 low, high. */
#define CLEARADCXY(counters, which) (OP(0x51) | (uint32_t)(counters) << 21 | (which))
#define CLEARADCZW(counters, which) (OP(0x54) | (uint32_t)(counters) << 21 | (which))
#define ADC_ALL 0xFu
#define ADC_CHANNEL1_Z 4u

/* Moves numbers into SrcA (unpacker 0) or SrcB (1). `next_z` is added to Z of channel 1, where the numbers go. */
#define UNPACR(unpacker, next_z, last_of_bank)                                                                         \
    (OP(0x42) | (uint32_t)(unpacker) << 23 | (uint32_t)(next_z) << 19 | 1u << 7 /* contexts */ |                       \
     (uint32_t)(last_of_bank) << 6 | 1u /* last */)

/* Dst[8 rows] += SrcB[8 rows] x SrcA[16 rows], then moves on as address mode `mode` says. */
#define MVMUL(mode) (OP(0x26) | (uint32_t)(mode) << 14)
/* Sets the rows of SrcA, SrcB and Dst and the phase to 0, and gives banks back to the unpackers: 1 SrcA, 2 SrcB. */
#define SETRWC_CLEAR(banks) (OP(0x37) | (uint32_t)(banks) << 22 | 0xFu)
/* Lets a half of Dst, or all, read as 0, for 32-bit rows. */
#define ZEROACC_HALF(half) (OP(0x10) | 2u << 19 | 1u << 18 | (half))
#define ZEROACC_ALL (OP(0x10) | 3u << 19 | 1u << 18)

/* Records the next `count` instructions from `first` of the 32 places on, or plays them. */
#define REPLAY_RECORD(first, count) (OP(0x04) | (uint32_t)(first) << 14 | (uint32_t)(count) << 4 | 1u)
#define REPLAY_PLAY(first, count) (OP(0x04) | (uint32_t)(first) << 14 | (uint32_t)(count) << 4)

/* What STALLWAIT and SEMWAIT hold back, and what STALLWAIT waits for (ISA: STALLWAIT.md; tt-llk p_stall). */
#define HOLD_MOVERS 0x01u /* unpackers, packer, their counters, the scalar unit */
#define HOLD_SYNC 0x02u
#define HOLD_PACK 0x04u
#define HOLD_MATH 0x40u
#define HOLD_CONFIGURATION 0x80u
#define HOLD_SFPU 0x100u
#define UNTIL_SCALAR 0x01u
#define UNTIL_PACK 0x08u
#define UNTIL_MATH 0x10u
#define UNTIL_SFPU 0x800u
#define STALLWAIT(hold, until) (OP(0xA2) | (uint32_t)(hold) << 15 | (until))

#define SEM_ZERO 1u /* wait while it is zero, or at its maximum */
#define SEM_FULL 2u
#define SEMINIT(semaphore, value, maximum)                                                                             \
    (OP(0xA3) | (uint32_t)(maximum) << 20 | (uint32_t)(value) << 16 | 4u << (semaphore))
#define SEMPOST(semaphore) (OP(0xA4) | 4u << (semaphore))
#define SEMGET(semaphore) (OP(0xA5) | 4u << (semaphore))
#define SEMWAIT(hold, semaphore, while_) (OP(0xA6) | (uint32_t)(hold) << 15 | 4u << (semaphore) | (while_))

#define SETC16(word, value) (OP(0xB2) | (uint32_t)(word) << 16 | (value))
#define WRCFG(word, gpr) (OP(0xB0) | (uint32_t)(gpr) << 16 | (word))
/* A half of a 32-bit register of the scalar unit. */
#define SETDMAREG_LOW(gpr, value) (OP(0x45) | ((uint32_t)(value)&0xFFFF) << 8 | (uint32_t)(gpr)*2)
#define SETDMAREG_HIGH(gpr, value) (OP(0x45) | ((uint32_t)(value) >> 16) << 8 | ((uint32_t)(gpr)*2 + 1))
#define DMANOP OP(0x60)

/* Moves 4 rows of Dst to L1; the last one of an address empties the packer's buffer. */
#define PACR(mode, last) (OP(0x41) | (uint32_t)(mode) << 15 | (last))

/* The vector unit: 8 registers of 32 lanes, which are 4 rows of Dst, of every second column. Bit 1 of the address
 * selects the odd columns. */
#define SFP_FLOAT32 3u
#define SFPLOAD(lreg, mode, address) (OP(0x70) | (uint32_t)(lreg) << 20 | SFP_FLOAT32 << 16 | (mode) << 13 | (address))
#define SFPSTORE(lreg, mode, address) (OP(0x72) | (uint32_t)(lreg) << 20 | SFP_FLOAT32 << 16 | (mode) << 13 | (address))
#define SFPLOADI_LOW(lreg, value) (OP(0x71) | (uint32_t)(lreg) << 20 | 2u << 16 | (value)) /* 16 bits, zeros above */
#define SFPIADD(to, with) (OP(0x79) | (uint32_t)(with) << 8 | (uint32_t)(to) << 4 | 4u)    /* flags stay as they are */
#define SFPMOV(to, from) (OP(0x7C) | (uint32_t)(from) << 8 | (uint32_t)(to) << 4)
#define SFPENABLE_ALL (OP(0x8A) | 3u << 12 | 10u) /* SFPENCC: all lanes, whatever was before */
#define SFPPLAIN_LANES (OP(0x91) | 15u << 4 | 1u) /* SFPCONFIG: LaneConfig 0, no exchanges and no indices */
#define SFPMINMAX(minimum, maximum) (OP(0x92) | (uint32_t)(maximum) << 8 | (uint32_t)(minimum) << 4 | 1u)
#define SFPTRANSP OP(0x8C) /* rows of L0..L3 become columns over them, and of L4..L7 */

#endif
