/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lensing/features.h>

#include "base/error.h"
#include "base/memory.h"

/* Opens a regular file of at most `limit` bytes. O_NONBLOCK: a named pipe without a writer must not hang the caller. */
static lns_status open_regular(const char *path, size_t limit, int *descriptor, size_t *size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return lns_fail(LNS_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    struct stat facts;
    lns_status status = LNS_OK;
    if (fstat(fd, &facts) != 0)
        status = lns_fail(LNS_ERROR_IO, "cannot read '%s': %s", path, strerror(errno));
    else if (S_ISDIR(facts.st_mode))
        status = lns_fail(LNS_ERROR_IO, "cannot read '%s': it is a folder, not a file", path);
    else if (!S_ISREG(facts.st_mode))
        status = lns_fail(LNS_ERROR_IO, "cannot read '%s': it is not a regular file", path);
    else if ((unsigned long long)facts.st_size > limit)
        status = lns_fail(LNS_ERROR_LIMIT, "'%s' has %lld bytes, more than the limit of %zu", path,
                          (long long)facts.st_size, limit);
    if (status != LNS_OK) {
        close(fd);
        return status;
    }
    *descriptor = fd;
    *size = (size_t)facts.st_size;
    return LNS_OK;
}

lns_status lns_file_read(const char *path, size_t limit, void **bytes, size_t *size) {
    int fd = -1;
    size_t expected = 0;
    *bytes = NULL;
    *size = 0;
    lns_status status = open_regular(path, limit, &fd, &expected);
    if (status != LNS_OK)
        return status;
    char *buffer = lns_alloc(expected);
    size_t done = 0;
    if (buffer == NULL)
        status = lns_fail_memory(expected);
    while (status == LNS_OK && done < expected) {
        const ssize_t got = read(fd, buffer + done, expected - done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0)
            break; /* the file shrank: what is left is for the parser to judge */
        else if (errno != EINTR)
            status = lns_fail(LNS_ERROR_IO, "cannot read '%s': %s", path, strerror(errno));
    }
    close(fd);
    if (status != LNS_OK) {
        lns_free(buffer);
        return status;
    }
    *bytes = buffer;
    *size = done;
    return LNS_OK;
}

lns_status lns_file_map_open(const char *path, size_t limit, lns_file_map *map) {
    int fd = -1;
    map->bytes = NULL;
    map->size = 0;
    size_t size = 0;
    lns_status status = open_regular(path, limit, &fd, &size);
    if (status != LNS_OK)
        return status;
    if (size > 0) {
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) {
            status = lns_fail(LNS_ERROR_IO, "cannot map '%s': %s", path, strerror(errno));
        } else {
            map->bytes = bytes;
            map->size = size;
        }
    }
    close(fd);
    return status;
}

void lns_file_map_close(lns_file_map *map) {
    if (map->bytes != NULL)
        munmap((void *)(size_t)map->bytes, map->size);
    map->bytes = NULL;
    map->size = 0;
}

char *lns_file_temporary_name(const char *path) {
    static atomic_uint counter;
    const size_t size = strlen(path) + 48;
    char *name = lns_alloc(size);
    if (name != NULL)
        snprintf(name, size, "%s.tmp-%ld-%u", path, (long)getpid(), atomic_fetch_add(&counter, 1));
    return name;
}

static lns_status write_all(int fd, const char *path, const void *bytes, size_t size) {
    const char *rest = bytes;
    while (size > 0) {
        const ssize_t done = write(fd, rest, size);
        if (done >= 0) {
            rest += done;
            size -= (size_t)done;
        } else if (errno != EINTR) {
            return lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
        }
    }
    return LNS_OK;
}

lns_status lns_file_save(const char *path, const void *bytes, size_t size) {
    if (path == NULL || (bytes == NULL && size > 0))
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_file_save: path and bytes must not be NULL");
    char *name = lns_file_temporary_name(path);
    if (name == NULL)
        return lns_fail_memory(strlen(path));
    lns_status status;
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
    } else {
        status = write_all(fd, path, bytes, size);
        if (close(fd) != 0 && status == LNS_OK)
            status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
        if (status == LNS_OK && rename(name, path) != 0)
            status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
        if (status != LNS_OK)
            unlink(name);
    }
    lns_free(name);
    return status;
}
