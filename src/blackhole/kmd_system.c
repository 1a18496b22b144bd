/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/kmd_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Size of a huge page on x86 and, with 4 KiB pages, on ARM. */
#define HUGE_PAGE ((size_t)2 << 20)

static int open_path(const char *path, int flags) {
    return open(path, flags | O_CLOEXEC);
}

static int control(int fd, unsigned long request, void *argument) {
    return ioctl(fd, request, argument);
}

static void *map(int fd, uint64_t offset, size_t size) {
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    return address != MAP_FAILED ? address : NULL;
}

static void unmap(void *address, size_t size) {
    munmap(address, size);
}

/* Gives back what lies outside of `size` bytes from the first multiple of HUGE_PAGE. */
static uint8_t *trim(uint8_t *start, size_t room, size_t size) {
    uint8_t *aligned = start + (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE;
    if (aligned > start)
        munmap(start, (size_t)(aligned - start));
    if (aligned + size < start + room)
        munmap(aligned + size, (size_t)(start + room - aligned - size));
    return aligned;
}

/* Without an IOMMU the driver takes only pages that follow each other in physical memory, as those of a huge page do. A
 * child that wrote to memory shared with it would otherwise leave the card with the old page. */
static void *allocate(size_t size) {
    const size_t room = size + HUGE_PAGE;
    void *start = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    uint8_t *memory = trim(start, room, size);
    madvise(memory, size, MADV_HUGEPAGE); /* without huge pages the driver decides */
    madvise(memory, size, MADV_DONTFORK);
    memset(memory, 0, size);
    return memory;
}

static ssize_t read_file(const char *path, void *bytes, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t count = read(fd, bytes, size);
    close(fd);
    return count;
}

static int compare(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* -1 for a name that is no number. */
static int number_of(const char *name) {
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return -1;
    const long number = strtol(name, &end, 10);
    return *end == '\0' && number <= INT_MAX ? (int)number : -1;
}

static int list_numbers(const char *folder, int *numbers, int room) {
    DIR *listing = opendir(folder);
    if (listing == NULL)
        return -1;
    int count = 0;
    for (const struct dirent *entry; count < room && (entry = readdir(listing)) != NULL;) {
        numbers[count] = number_of(entry->d_name);
        count += numbers[count] >= 0;
    }
    closedir(listing);
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    return count;
}

static void sleep_ms(unsigned ms) {
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

const lns_kmd_system lns_kmd_linux = {
    .open = open_path,
    .close = close,
    .ioctl = control,
    .map = map,
    .unmap = unmap,
    .allocate = allocate,
    .release = unmap,
    .read_file = read_file,
    .list_numbers = list_numbers,
    .sleep_ms = sleep_ms,
};
