/* SPDX-License-Identifier: Apache-2.0 */
/* What Lensing asks of the operating system to reach a card, as a table: tests put a card that does not exist behind
 * it, and make every call fail. Functions that can fail set errno. */
#ifndef LENSING_BLACKHOLE_KMD_SYSTEM_H
#define LENSING_BLACKHOLE_KMD_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct lns_kmd_system {
    int (*open)(const char *path, int flags);
    int (*close)(int fd);
    int (*ioctl)(int fd, unsigned long request, void *argument);
    /* Memory of the device, shared, to read and write; NULL on error. */
    void *(*map)(int fd, uint64_t offset, size_t size);
    void (*unmap)(void *address, size_t size);
    /* Memory of the process that begins as zero, physically contiguous as far as the system can do that, and not given
     * to children; NULL on error. */
    void *(*allocate)(size_t size);
    void (*release)(void *address, size_t size);
    /* The first `size` bytes of a file; how many there are, or -1. */
    ssize_t (*read_file)(const char *path, void *bytes, size_t size);
    /* The numbers among the names in a folder, ascending, at most `room`; how many, or -1. */
    int (*list_numbers)(const char *folder, int *numbers, int room);
    void (*sleep_ms)(unsigned ms);
} lns_kmd_system;

extern const lns_kmd_system lns_kmd_linux;

#endif
