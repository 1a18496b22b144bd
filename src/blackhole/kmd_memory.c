/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/kmd_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Of a huge page: anything smaller would not get one. */
#define WHOLE ((size_t)2 << 20)

/* Most that the driver allocates at once (tt-kmd, memory.h). */
#define SIZE_LIMIT ((size_t)256 << 20)

static int pin_own(const lns_kmd_card *card, size_t size, lns_kmd_memory *memory) {
    void *data = card->system->allocate(size);
    if (data == NULL)
        return -1;
    lns_kmd_pin pin = {
        .output_size = 16, .flags = LNS_KMD_PIN_FOR_NOC, .address = (uint64_t)(uintptr_t)data, .size = size};
    if (card->system->ioctl(card->fd, LNS_KMD_PIN_PAGES, &pin) != 0) {
        const int error = errno;
        card->system->release(data, size);
        errno = error;
        return -1;
    }
    *memory = (lns_kmd_memory){.data = data, .size = size, .noc_address = pin.noc_address};
    return 0;
}

static int let_driver_allocate(const lns_kmd_card *card, lns_kmd_memories *memories, size_t size,
                               lns_kmd_memory *memory) {
    if (memories->buffers_used == LNS_KMD_DMA_BUFFERS) {
        errno = ENOSPC;
        return -1;
    }
    lns_kmd_dma_buffer buffer = {.requested_size = (uint32_t)size,
                                 .index = (uint8_t)memories->buffers_used,
                                 .flags = LNS_KMD_DMA_BUFFER_FOR_NOC};
    if (card->system->ioctl(card->fd, LNS_KMD_ALLOCATE_DMA_BUFFER, &buffer) != 0)
        return -1;
    memories->buffers_used++;
    void *data = card->system->map(card->fd, buffer.map_offset, size);
    if (data == NULL)
        return -1;
    memset(data, 0, size);
    *memory = (lns_kmd_memory){.data = data, .size = size, .noc_address = buffer.noc_address, .is_of_driver = 1};
    return 0;
}

lns_status lns_kmd_memory_pin(const lns_kmd_card *card, lns_kmd_memories *memories, size_t size,
                              lns_blackhole_host_memory *memory) {
    memset(memory, 0, sizeof *memory);
    if (size == 0 || size > SIZE_LIMIT)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "cannot share %zu bytes with a card; it must be 1 to %zu", size,
                        SIZE_LIMIT);
    lns_kmd_memory *slot = memories->slots;
    while (slot < memories->slots + LNS_KMD_MEMORIES && slot->data != NULL)
        slot++;
    if (slot == memories->slots + LNS_KMD_MEMORIES)
        return lns_fail(LNS_ERROR_LIMIT, "device %d: more than %d pieces of memory are shared with the card", card->id,
                        LNS_KMD_MEMORIES);
    const size_t whole = (size + WHOLE - 1) / WHOLE * WHOLE;
    if (pin_own(card, whole, slot) != 0) {
        char reason[128];
        snprintf(reason, sizeof reason, "%s", strerror(errno));
        if (let_driver_allocate(card, memories, whole, slot) != 0)
            return lns_fail(LNS_ERROR_SYSTEM,
                            "device %d: %zu bytes of memory can neither be pinned (%s) nor be had from the driver (%s)",
                            card->id, whole, reason, strerror(errno));
    }
    *memory = (lns_blackhole_host_memory){slot->data, slot->size, slot->noc_address};
    return LNS_OK;
}

static void free_slot(const lns_kmd_card *card, lns_kmd_memory *slot) {
    if (slot->is_of_driver) {
        card->system->unmap(slot->data, slot->size);
    } else {
        lns_kmd_unpin unpin = {.address = (uint64_t)(uintptr_t)slot->data, .size = slot->size};
        card->system->ioctl(card->fd, LNS_KMD_UNPIN_PAGES, &unpin);
        card->system->release(slot->data, slot->size);
    }
    memset(slot, 0, sizeof *slot);
}

void lns_kmd_memory_unpin(const lns_kmd_card *card, lns_kmd_memories *memories, lns_blackhole_host_memory *memory) {
    for (lns_kmd_memory *slot = memories->slots; slot < memories->slots + LNS_KMD_MEMORIES; slot++)
        if (memory->data != NULL && slot->data == memory->data)
            free_slot(card, slot);
    memset(memory, 0, sizeof *memory);
}

void lns_kmd_memory_unpin_all(const lns_kmd_card *card, lns_kmd_memories *memories) {
    for (lns_kmd_memory *slot = memories->slots; slot < memories->slots + LNS_KMD_MEMORIES; slot++)
        if (slot->data != NULL)
            free_slot(card, slot);
}
