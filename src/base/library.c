/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* For all libraries: each is loaded once, and rarely two at the same time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *open_file(const char *name) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
#if defined(__APPLE__)
    /* Where Homebrew and MacPorts put libraries, and the system does not look. */
    static const char *const folders[] = {"/opt/homebrew/lib", "/opt/local/lib"};
    for (size_t i = 0; handle == NULL && i < sizeof folders / sizeof *folders; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
#endif
    return handle;
}

static lns_status open_library(lns_library *library) {
    char reason[512] = "no file is known";
    const size_t count = sizeof library->files / sizeof *library->files;
    for (size_t i = 0; i < count && library->files[i] != NULL; i++) {
        library->handle = open_file(library->files[i]);
        if (library->handle != NULL)
            return LNS_OK;
        const char *text = dlerror();
        if (i == 0) /* the usual name says most */
            snprintf(reason, sizeof reason, "%s", text != NULL ? text : library->files[i]);
    }
    return lns_fail(LNS_ERROR_UNSUPPORTED, "%s, which could not be loaded (%s); install it with %s", library->need,
                    reason, library->install);
}

static void *find(void *handle, const lns_library_symbol *symbol) {
    void *address = NULL;
#if !defined(__APPLE__)
    /* When the program itself is linked with the library, the program may hold the library's variables. The library
     * then uses those, and its own stay empty. */
    if (symbol->is_variable)
        address = dlsym(RTLD_DEFAULT, symbol->name);
#endif
    return address != NULL ? address : dlsym(handle, symbol->name);
}

static lns_status load(lns_library *library) {
    if (library->handle == NULL) {
        const lns_status status = open_library(library);
        if (status != LNS_OK)
            return status;
    }
    for (size_t i = 0; i < library->symbol_count; i++) {
        void *address = find(library->handle, &library->symbols[i]);
        if (address == NULL)
            return lns_fail(LNS_ERROR_UNSUPPORTED, "%s: the one that is installed lacks %s; update it with %s",
                            library->need, library->symbols[i].name, library->install);
        memcpy((char *)library->table + library->symbols[i].offset, &address, sizeof address);
    }
    return library->start != NULL ? library->start() : LNS_OK;
}

lns_status lns_library_load(lns_library *library) {
    if (atomic_load_explicit(&library->is_ready, memory_order_acquire))
        return LNS_OK;
    lns_status status = LNS_OK;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&library->is_ready, memory_order_relaxed)) {
        status = load(library);
        atomic_store_explicit(&library->is_ready, status == LNS_OK, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return status;
}
