/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the NoC by one core (ISA: NoC/MemoryMap.md, Counters.md, Atomics.md). */
#ifndef LENSING_BLACKHOLE_NOC_H
#define LENSING_BLACKHOLE_NOC_H

#include "core.h"

/* Registers of the interfaces to NoC 0 and NoC 1, which flows the other way and has links of its own. */
#define NOC_REGISTERS 0xFFB20000u
#define NOC1_REGISTERS 0xFFB30000u
#define NOC_TARGET_LOW 0x00u  /* where data comes from, or what an atomic request changes */
#define NOC_TARGET_HIGH 0x04u /* NOC_TARG_ADDR_MID */
#define NOC_TARGET_TILE 0x08u /* NOC_TARG_ADDR_HI */
#define NOC_RETURN_LOW 0x0Cu  /* where it goes */
#define NOC_RETURN_HIGH 0x10u
#define NOC_RETURN_TILE 0x14u
#define NOC_TAG 0x18u /* NOC_PACKET_TAG */
#define NOC_CONTROL 0x1Cu
#define NOC_LENGTH 0x20u /* NOC_AT_LEN_BE */
#define NOC_DATA 0x28u   /* NOC_AT_DATA */
#define NOC_COMMAND 0x40u
#define NOC_OWN_TILE 0x148u                       /* NOC_ID_LOGICAL: translated coordinates of this tile */
#define NOC_OUTSTANDING(tag) (0x240u + 4 * (tag)) /* NIU_MST_REQS_OUTSTANDING_ID */
#define NOC_ATOMICS_DONE 0x200u                   /* NIU_MST_ATOMIC_RESP_RECEIVED */
#define NOC_WRITES_DONE 0x204u                    /* NIU_MST_WR_ACK_RECEIVED */
#define NOC_READS_DONE 0x208u                     /* NIU_MST_RD_RESP_RECEIVED */

/* Values of NOC_CONTROL. */
#define NOC_READ 0u
#define NOC_ATOMIC 1u
#define NOC_WRITE 2u
#define NOC_ACKNOWLEDGED 0x10u  /* NOC_CMD_RESP_MARKED */
#define NOC_MULTICAST 0x20u     /* NOC_CMD_BRCST_PACKET */
#define NOC_RESERVE_PATH 0x100u /* NOC_CMD_PATH_RESERVE: multicasts cannot block each other */
#define NOC_TAG_SHIFT 10

/* NOC_LENGTH of an atomic increment of all 32 bits: opcode, width - 1, and the word in its 16 bytes. */
#define NOC_INCREMENT(address) (1u << 12 | 31u << 2 | ((address) / 4 % 4))

#define NOC_LARGEST 16384u /* bytes of a request */

/* One interface, and the requests that this core has made there since it began; the counters of the interface begin
 * elsewhere. */
typedef struct noc {
    uint32_t registers, own_tile, reads, writes, atomics;
} noc;

static inline volatile uint32_t *noc_register(const noc *n, uint32_t offset) {
    return word_at(n->registers + offset);
}

static inline void noc_begin(noc *n, uint32_t registers) {
    n->registers = registers;
    n->own_tile = *noc_register(n, NOC_OWN_TILE) & 0xFFF;
    n->reads = *noc_register(n, NOC_READS_DONE);
    n->writes = *noc_register(n, NOC_WRITES_DONE);
    n->atomics = *noc_register(n, NOC_ATOMICS_DONE);
}

typedef struct noc_place {
    uint64_t address;
    uint32_t tile;
} noc_place;

/* `tag` is 0..15: requests of a tag can be waited for. */
static inline void noc_request(const noc *n, uint32_t kind, noc_place target, noc_place back, uint32_t length, uint32_t tag) {
    while (*noc_register(n, NOC_COMMAND) & 1)
        ;
    *noc_register(n, NOC_TARGET_LOW) = (uint32_t)target.address;
    *noc_register(n, NOC_TARGET_HIGH) = (uint32_t)(target.address >> 32);
    *noc_register(n, NOC_TARGET_TILE) = target.tile;
    *noc_register(n, NOC_RETURN_LOW) = (uint32_t)back.address;
    *noc_register(n, NOC_RETURN_HIGH) = (uint32_t)(back.address >> 32);
    *noc_register(n, NOC_RETURN_TILE) = back.tile;
    *noc_register(n, NOC_TAG) = tag << NOC_TAG_SHIFT;
    *noc_register(n, NOC_CONTROL) = kind | NOC_ACKNOWLEDGED;
    *noc_register(n, NOC_LENGTH) = length;
    *noc_register(n, NOC_COMMAND) = 1;
}

/* Requests that differ only in their addresses: the interface keeps what is written to its registers. */
static inline void noc_begin_rows(const noc *n, uint32_t kind, uint32_t target_tile, uint32_t back_tile, uint32_t length) {
    while (*noc_register(n, NOC_COMMAND) & 1)
        ;
    *noc_register(n, NOC_TARGET_TILE) = target_tile;
    *noc_register(n, NOC_RETURN_TILE) = back_tile;
    *noc_register(n, NOC_TAG) = 0;
    *noc_register(n, NOC_CONTROL) = kind | NOC_ACKNOWLEDGED;
    *noc_register(n, NOC_LENGTH) = length;
}

static inline void noc_row(const noc *n, uint64_t target, uint64_t back) {
    while (*noc_register(n, NOC_COMMAND) & 1)
        ;
    *noc_register(n, NOC_TARGET_LOW) = (uint32_t)target;
    *noc_register(n, NOC_TARGET_HIGH) = (uint32_t)(target >> 32);
    *noc_register(n, NOC_RETURN_LOW) = (uint32_t)back;
    *noc_register(n, NOC_RETURN_HIGH) = (uint32_t)(back >> 32);
    *noc_register(n, NOC_COMMAND) = 1;
}

/* The old value, which is not wanted, goes to `scratch`. */
static inline void noc_increment(noc *n, noc_place counter, uint32_t scratch) {
    while (*noc_register(n, NOC_COMMAND) & 1)
        ;
    *noc_register(n, NOC_DATA) = 1;
    noc_request(n, NOC_ATOMIC, counter, (noc_place){scratch, n->own_tile}, NOC_INCREMENT((uint32_t)counter.address), 0);
    n->atomics++;
}

/* Up to NOC_LARGEST bytes, which can be waited for alone. */
static inline void noc_read_tagged(noc *n, noc_place from, uint32_t to, uint32_t size, uint32_t tag) {
    noc_request(n, NOC_READ, from, (noc_place){to, n->own_tile}, size, tag);
    n->reads++;
}

static inline void noc_wait_for_tag(const noc *n, uint32_t tag) {
    while (*noc_register(n, NOC_OUTSTANDING(tag)) & 0xFF)
        ;
}

/* Writes up to NOC_LARGEST bytes at `at` to the same place of the other `others` tiles of the rectangle. Each of them
 * acknowledges it. */
static inline void noc_multicast(noc *n, uint32_t at, uint32_t rectangle, uint32_t others, uint32_t size) {
    noc_request(n, NOC_WRITE | NOC_MULTICAST | NOC_RESERVE_PATH, (noc_place){at, n->own_tile}, (noc_place){at, rectangle},
                size, 0);
    n->writes += others;
}

/* Returns when all data is where it goes. */
static inline void noc_land(const noc *n) {
    while (*noc_register(n, NOC_READS_DONE) != n->reads || *noc_register(n, NOC_WRITES_DONE) != n->writes ||
           *noc_register(n, NOC_ATOMICS_DONE) != n->atomics)
        ;
    fence();
}

#endif
