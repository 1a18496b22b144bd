/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded into a program with LD_PRELOAD, puts the cards of fake_driver.c under /dev/tenstorrent: so the system calls of
 * the program are tested too. LENSING_FAKE_CARDS says what is there, in words: "good", or what is wrong: "none",
 * "wormhole", "old", "busy", "narrow", "gone", and "two" for a second card. LENSING_FAKE_FOLDER is a folder with files
 * named as the cards are numbered. */
#undef _FILE_OFFSET_BITS /* it makes open() and mmap() other names of open64() and mmap64() */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blackhole/kmd_abi.h"
#include "fake_driver.h"

#define FOLDER "/dev/tenstorrent"
#define FIRST_DESCRIPTOR 1000
#define MAPPINGS 64

static void *mappings[MAPPINGS];

static int has_word(const char *word) {
    const char *words = getenv("LENSING_FAKE_CARDS");
    return words != NULL && strstr(words, word) != NULL;
}

static void prepare(void) {
    fake_driver_reset();
    fake.is_loaded = !has_word("none");
    fake.cards[0].device = has_word("wormhole") ? LNS_KMD_WORMHOLE : LNS_KMD_BLACKHOLE;
    fake.minor = has_word("old") ? 5 : 6;
    fake.cards[0].locked_by_other = has_word("busy");
    fake.cards[0].columns = has_word("narrow") ? 0x07ff : 0x0fff;
    fake.cards[0].is_gone = has_word("gone");
    fake.cards[1].is_present = has_word("two");
}

/* The cards come into being when the first is looked at: the server closes what is open at its start. */
static int is_card(const char *path) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (strncmp(path, FOLDER "/", sizeof FOLDER) != 0)
        return 0;
    pthread_once(&once, prepare);
    return 1;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const int mode = va_arg(arguments, int);
    va_end(arguments);
    return is_card(path) ? fake_system.open(path, flags) : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const int mode = va_arg(arguments, int);
    va_end(arguments);
    return open(path, flags | O_LARGEFILE, mode);
}

int close(int fd) {
    return fd >= FIRST_DESCRIPTOR ? fake_system.close(fd) : (int)syscall(SYS_close, fd);
}

int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fd >= FIRST_DESCRIPTOR ? fake_system.ioctl(fd, request, argument)
                                  : (int)syscall(SYS_ioctl, fd, request, argument);
}

static int place_of(const void *address) {
    int i = 0;
    while (i < MAPPINGS && mappings[i] != address)
        i++;
    return i;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd < FIRST_DESCRIPTOR)
        return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
    const int place = place_of(NULL);
    void *memory = place < MAPPINGS ? fake_system.map(fd, (uint64_t)offset, size) : NULL;
    if (memory == NULL)
        return MAP_FAILED;
    mappings[place] = memory;
    return memory;
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    return mmap(address, size, protection, flags, fd, offset);
}

int munmap(void *address, size_t size) {
    const int place = place_of(address);
    if (place == MAPPINGS)
        return (int)syscall(SYS_munmap, address, size);
    mappings[place] = NULL;
    fake_system.unmap(address, size);
    return 0;
}

DIR *opendir(const char *path) {
    static DIR *(*real)(const char *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "opendir");
    return real(strcmp(path, FOLDER) == 0 && !has_word("none") ? getenv("LENSING_FAKE_FOLDER") : path);
}
