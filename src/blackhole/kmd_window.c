/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/kmd_window.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void free_window(const lns_kmd_card *card, uint32_t id) {
    lns_kmd_free_window window = {.id = id};
    card->system->ioctl(card->fd, LNS_KMD_FREE_WINDOW, &window);
}

lns_status lns_kmd_window_open(const lns_kmd_card *card, lns_kmd_caching caching, lns_kmd_window *window) {
    memset(window, 0, sizeof *window);
    lns_kmd_allocate_window allocated = {.size = LNS_KMD_WINDOW_SIZE};
    if (card->system->ioctl(card->fd, LNS_KMD_ALLOCATE_WINDOW, &allocated) != 0)
        return lns_fail(LNS_ERROR_SYSTEM, "device %d: the driver has no window of 2 MiB left: %s", card->id,
                        strerror(errno));
    void *memory = card->system->map(
        card->fd, caching == LNS_KMD_UNCACHED ? allocated.map_offset_uncached : allocated.map_offset_combining,
        LNS_KMD_WINDOW_SIZE);
    if (memory == NULL) {
        const int error = errno;
        free_window(card, allocated.id);
        return lns_fail(LNS_ERROR_SYSTEM, "device %d: cannot map a window: %s", card->id, strerror(error));
    }
    window->id = allocated.id;
    window->memory = memory;
    return LNS_OK;
}

/* The driver frees no window that is still mapped. */
void lns_kmd_window_close(const lns_kmd_card *card, lns_kmd_window *window) {
    if (window->memory == NULL)
        return;
    card->system->unmap((void *)(uintptr_t)window->memory, LNS_KMD_WINDOW_SIZE);
    free_window(card, window->id);
    memset(window, 0, sizeof *window);
}

lns_status lns_kmd_window_point(const lns_kmd_card *card, lns_kmd_window *window, const lns_blackhole_tile *first,
                                lns_blackhole_tile last, uint64_t address, uint8_t ordering) {
    lns_kmd_configure_window target = {
        .id = window->id,
        .address = address / LNS_KMD_WINDOW_SIZE * LNS_KMD_WINDOW_SIZE,
        .x_end = last.x,
        .y_end = last.y,
        .ordering = ordering,
    };
    if (first != NULL) {
        target.x_start = first->x;
        target.y_start = first->y;
        target.multicast = 1;
    }
    if (window->has_target && memcmp(&window->target, &target, sizeof target) == 0)
        return LNS_OK;
    window->has_target = 0;
    lns_kmd_configure_window asked = target;
    if (card->system->ioctl(card->fd, LNS_KMD_CONFIGURE_WINDOW, &asked) != 0)
        return lns_fail(LNS_ERROR_SYSTEM, "device %d: cannot point a window at tile %d,%d: %s", card->id, last.x,
                        last.y, strerror(errno));
    window->target = target;
    window->has_target = 1;
    return LNS_OK;
}

void lns_kmd_window_write(lns_kmd_window *window, size_t offset, const void *data, size_t size) {
    volatile uint32_t *target = (volatile uint32_t *)(window->memory + offset);
    const uint8_t *source = data;
    for (size_t i = 0; i < size / 4; i++) {
        uint32_t word;
        memcpy(&word, source + 4 * i, sizeof word);
        target[i] = word;
    }
}

void lns_kmd_window_read(const lns_kmd_window *window, size_t offset, void *data, size_t size) {
    const volatile uint32_t *source = (const volatile uint32_t *)(window->memory + offset);
    uint8_t *target = data;
    for (size_t i = 0; i < size / 4; i++) {
        const uint32_t word = source[i];
        memcpy(target + 4 * i, &word, sizeof word);
    }
}

/* A read is a round trip over the bus whatever its width. */
void lns_kmd_window_read_memory(const lns_kmd_window *window, size_t offset, void *data, size_t size) {
    uint8_t *target = data;
    const size_t head = offset % 8 != 0 && size >= 4 ? 4 : 0;
    lns_kmd_window_read(window, offset, target, head);
    const volatile uint64_t *source = (const volatile uint64_t *)(window->memory + offset + head);
    const size_t pairs = (size - head) / 8;
    for (size_t i = 0; i < pairs; i++) {
        const uint64_t pair = source[i];
        memcpy(target + head + 8 * i, &pair, sizeof pair);
    }
    lns_kmd_window_read(window, offset + head + 8 * pairs, target + head + 8 * pairs, size - head - 8 * pairs);
}
