/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded into a program with LD_PRELOAD, makes the n-th call of one kind fail as it does when the system has no more:
 * an allocation, a new thread, mmap(), accept(), write(). Unlike lns_alloc_fail_after() it reaches the allocations of
 * all libraries. Which call fails is said in a small file, LENSING_FAULTS, that is shared with the test (fault_control.py). */
#undef _FILE_OFFSET_BITS /* it makes mmap() another name of mmap64() */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { NOTHING, MEMORY, THREAD, MMAP, ACCEPT, WRITE };

/* The file; fault_control.py has the same. */
struct control {
    atomic_llong kind;
    atomic_llong left;   /* calls of that kind until one fails: 1 is the next one */
    atomic_llong repeat; /* how many fail from there on */
    atomic_llong failed; /* how many did */
    atomic_llong blocks; /* allocated and not freed, from the start of the program */
};

static struct control none, *control = &none;

static __attribute__((constructor)) void open_control(void) {
    const char *path = getenv("LENSING_FAULTS");
    const int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *shared = (void *)syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)0);
    if (shared != MAP_FAILED)
        control = shared;
    close(fd);
}

static int must_fail(enum kind kind, int error) {
    if (atomic_load(&control->kind) != kind)
        return 0;
    const long long left = atomic_fetch_sub(&control->left, 1);
    if (left > 1 || left <= 1 - atomic_load(&control->repeat))
        return 0;
    atomic_fetch_add(&control->failed, 1);
    errno = error;
    return 1;
}

/* ---- Memory; the __libc names are the functions of glibc under the ones that are replaced here -- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static void *counted(void *block) {
    if (block != NULL)
        atomic_fetch_add(&control->blocks, 1);
    return block;
}

void *malloc(size_t size) {
    return must_fail(MEMORY, ENOMEM) ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return must_fail(MEMORY, ENOMEM) ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
    if (must_fail(MEMORY, ENOMEM))
        return NULL;
    void *moved = __libc_realloc(block, size);
    if (block == NULL)
        counted(moved);
    else if (moved == NULL && size == 0)
        atomic_fetch_sub(&control->blocks, 1);
    return moved;
}

void *memalign(size_t alignment, size_t size) {
    return must_fail(MEMORY, ENOMEM) ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *aligned = memalign(alignment, size);
    if (aligned == NULL)
        return ENOMEM;
    *block = aligned;
    return 0;
}

void free(void *block) {
    if (block != NULL)
        atomic_fetch_sub(&control->blocks, 1);
    __libc_free(block);
}

/* ---- The system --------------------------------------------------------------------------------- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (must_fail(THREAD, EAGAIN))
        return EAGAIN;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, run, argument);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (must_fail(MMAP, ENOMEM))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    return mmap(address, size, protection, flags, fd, offset);
}

int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    return must_fail(ACCEPT, ENFILE) ? -1 : (int)syscall(SYS_accept4, fd, address, size, flags);
}

int accept(int fd, struct sockaddr *address, socklen_t *size) {
    return accept4(fd, address, size, 0);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    return must_fail(WRITE, ENOSPC) ? -1 : syscall(SYS_write, fd, bytes, size);
}
