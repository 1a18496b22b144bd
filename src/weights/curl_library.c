/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static lns_curl library;
static const char *missing; /* what could not be found; NULL when all is there */

#define MEMBER(name)                                                                                                   \
    { "curl_" #name, offsetof(lns_curl, name) }

static const struct {
    const char *name;
    size_t offset;
} members[] = {
    MEMBER(global_init),  MEMBER(easy_init),     MEMBER(easy_setopt),  MEMBER(easy_perform),   MEMBER(easy_getinfo),
    MEMBER(easy_cleanup), MEMBER(easy_strerror), MEMBER(slist_append), MEMBER(slist_free_all), MEMBER(url),
    MEMBER(url_set),      MEMBER(url_get),       MEMBER(url_cleanup),  MEMBER(free),
};

static void load(void) {
    /* Debian's builds against OpenSSL and against GnuTLS, and macOS. */
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    void *handle = NULL;
    for (size_t i = 0; handle == NULL && i < sizeof names / sizeof *names; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        missing = names[0];
        return;
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        void *symbol = dlsym(handle, members[i].name);
        if (symbol == NULL) {
            missing = members[i].name;
            return;
        }
        memcpy((char *)&library + members[i].offset, &symbol, sizeof symbol);
    }
    if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        missing = "a working TLS library";
}

lns_status lns_curl_load(const lns_curl **curl) {
    pthread_once(&once, load);
    *curl = &library;
    if (missing == NULL)
        return LNS_OK;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "downloads need the library libcurl 7.62 or newer: %s was not found",
                    missing);
}
