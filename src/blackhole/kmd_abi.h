/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver tt-kmd understands: the numbers and structs of its ioctls that Lensing uses, declared here anew.
 *
 * Facts from the driver's public interface, ioctl.h of tt-kmd 2.10.0, and from chardev.c, memory.c and blackhole.c
 * there for what a call does. Its interface only grows; LNS_KMD_VERSION_MINOR names the release that has all of this.
 */
#ifndef LENSING_BLACKHOLE_KMD_ABI_H
#define LENSING_BLACKHOLE_KMD_ABI_H

#include <stdint.h>
#include <sys/ioctl.h>

/* Oldest driver: 2.4.1 brought LNS_KMD_RESET_ASIC, 2.6.0 of January 2026 LNS_KMD_SET_POWER_STATE. */
#define LNS_KMD_VERSION_MAJOR 2
#define LNS_KMD_VERSION_MINOR 6

#define LNS_KMD_CALL(number) _IO(0xfa, number)
#define LNS_KMD_GET_DEVICE_INFO LNS_KMD_CALL(0)
#define LNS_KMD_ALLOCATE_DMA_BUFFER LNS_KMD_CALL(3)
#define LNS_KMD_GET_DRIVER_INFO LNS_KMD_CALL(5)
#define LNS_KMD_RESET_DEVICE LNS_KMD_CALL(6)
#define LNS_KMD_PIN_PAGES LNS_KMD_CALL(7)
#define LNS_KMD_LOCK_CONTROL LNS_KMD_CALL(8)
#define LNS_KMD_UNPIN_PAGES LNS_KMD_CALL(10)
#define LNS_KMD_ALLOCATE_WINDOW LNS_KMD_CALL(11)
#define LNS_KMD_FREE_WINDOW LNS_KMD_CALL(12)
#define LNS_KMD_CONFIGURE_WINDOW LNS_KMD_CALL(13)
#define LNS_KMD_SET_NOC_CLEANUP LNS_KMD_CALL(14)
#define LNS_KMD_SET_POWER_STATE LNS_KMD_CALL(15)

/* PCI identities, as enumerate.h of tt-kmd has them. */
#define LNS_KMD_VENDOR 0x1e52
#define LNS_KMD_WORMHOLE 0x401e
#define LNS_KMD_BLACKHOLE 0xb140

/* Members named output_size say how many bytes of the output part the caller knows; the driver fills no more. */

typedef struct lns_kmd_device_info {
    uint32_t output_size; /* in: 20 */
    uint32_t filled;
    uint16_t vendor, device, subsystem_vendor, subsystem;
    uint16_t bus_device_function; /* bits 0-2 function, 3-7 device, 8-15 bus */
    uint16_t dma_buffer_size_log2;
    uint16_t domain, reserved;
} lns_kmd_device_info;

typedef struct lns_kmd_driver_info {
    uint32_t output_size; /* in: 12 */
    uint32_t filled;
    uint32_t interface_version;
    uint8_t major, minor, patch, reserved;
} lns_kmd_driver_info;

/* Kinds of reset. The first restarts the whole chip; the second lets the driver set it up again afterwards. */
#define LNS_KMD_RESET_ASIC 4
#define LNS_KMD_RESET_DONE 6

typedef struct lns_kmd_reset {
    uint32_t output_size; /* in: 8 */
    uint32_t kind;
    uint32_t filled;
    uint32_t result; /* 0: it worked */
} lns_kmd_reset;

/* The pages get an address that tiles can use as a destination of the NoC. */
#define LNS_KMD_PIN_FOR_NOC 2

typedef struct lns_kmd_pin {
    uint32_t output_size; /* in: 16 */
    uint32_t flags;
    uint64_t address, size; /* whole pages; contiguous in physical memory unless an IOMMU translates */
    uint64_t bus_address, noc_address;
} lns_kmd_pin;

typedef struct lns_kmd_unpin {
    uint64_t address, size; /* as they were pinned */
    uint64_t reserved;
} lns_kmd_unpin;

/* Memory that the driver allocates. It cannot be freed before the descriptor is closed. */
#define LNS_KMD_DMA_BUFFER_FOR_NOC 2
#define LNS_KMD_DMA_BUFFERS 256

typedef struct lns_kmd_dma_buffer {
    uint32_t requested_size; /* whole pages */
    uint8_t index;           /* each can be used once for a descriptor */
    uint8_t flags;
    uint8_t reserved0[2];
    uint64_t reserved1[2];
    uint64_t bus_address;
    uint64_t map_offset; /* for mmap() */
    uint32_t size, reserved2;
    uint64_t noc_address, reserved3;
} lns_kmd_dma_buffer;

/* 64 locks for each card. Nothing but agreement between programs gives them a meaning; the first 16 are for Ethernet
 * cores. The driver releases a lock when the descriptor that holds it is closed. */
#define LNS_KMD_LOCK_ACQUIRE 0 /* value: 1 got it, 0 somebody has it */
#define LNS_KMD_LOCK_RELEASE 1
#define LNS_KMD_LOCK_TEST 2 /* value: bit 0 this descriptor has it, bit 1 any has */

typedef struct lns_kmd_lock {
    uint32_t output_size; /* in: 4 */
    uint32_t operation;
    uint8_t index, reserved0[3];
    uint8_t value, reserved1[3];
} lns_kmd_lock;

/* Windows into the address space of tiles; "TLB" in the driver. 2 MiB ones are in BAR 0. */
#define LNS_KMD_WINDOW_SIZE (2u << 20)

typedef struct lns_kmd_allocate_window {
    uint64_t size, reserved0;
    uint32_t id, reserved1;
    uint64_t map_offset_uncached, map_offset_combining; /* for mmap() */
    uint64_t reserved2;
} lns_kmd_allocate_window;

typedef struct lns_kmd_free_window {
    uint32_t id;
} lns_kmd_free_window;

/* Orderings; table in WormholeB0/PCIExpressTile/TLBs.md of tt-isa-documentation: with LNS_KMD_ORDERING_DEFAULT a write
 * may pass another write on the NoC, but no read passes a write; LNS_KMD_ORDERING_STRICT keeps all in order. */
#define LNS_KMD_ORDERING_DEFAULT 0
#define LNS_KMD_ORDERING_STRICT 1

typedef struct lns_kmd_configure_window {
    uint32_t id, reserved0;
    uint64_t address; /* a multiple of the window's size */
    uint16_t x_end, y_end, x_start, y_start;
    uint8_t noc, multicast, ordering, linked;
    uint8_t static_channel, reserved1[3];
    uint32_t reserved2[2];
    uint64_t reserved3;
} lns_kmd_configure_window;

/* One write that the driver makes when the descriptor is closed, however the process ended. */
typedef struct lns_kmd_cleanup {
    uint32_t size; /* of this struct */
    uint32_t flags;
    uint8_t enabled, x, y, noc;
    uint32_t reserved;
    uint64_t address, data; /* 4 bytes */
} lns_kmd_cleanup;

/* A descriptor opened with O_APPEND asks for no power until this is called, and for none after it is closed. */
#define LNS_KMD_POWER_MAX_CLOCK 1u
#define LNS_KMD_POWER_DRAM 2u
#define LNS_KMD_POWER_TENSIX 4u
#define LNS_KMD_POWER_KNOWN_FLAGS 4 /* how many flags `power` speaks of; the fourth are the CPU cores of the chip */

typedef struct lns_kmd_power {
    uint32_t size; /* of this struct */
    uint32_t flags;
    uint8_t reserved;
    uint8_t validity; /* bits 0-3: number of flags */
    uint16_t power;
    uint16_t settings[14];
} lns_kmd_power;

_Static_assert(sizeof(lns_kmd_device_info) == 24, "as in the driver");
_Static_assert(sizeof(lns_kmd_driver_info) == 16, "as in the driver");
_Static_assert(sizeof(lns_kmd_reset) == 16, "as in the driver");
_Static_assert(sizeof(lns_kmd_pin) == 40, "as in the driver");
_Static_assert(sizeof(lns_kmd_unpin) == 24, "as in the driver");
_Static_assert(sizeof(lns_kmd_dma_buffer) == 64, "as in the driver");
_Static_assert(sizeof(lns_kmd_lock) == 16, "as in the driver");
_Static_assert(sizeof(lns_kmd_allocate_window) == 48, "as in the driver");
_Static_assert(sizeof(lns_kmd_free_window) == 4, "as in the driver");
_Static_assert(sizeof(lns_kmd_configure_window) == 48, "as in the driver");
_Static_assert(sizeof(lns_kmd_cleanup) == 32, "as in the driver");
_Static_assert(sizeof(lns_kmd_power) == 40, "as in the driver");

#endif
