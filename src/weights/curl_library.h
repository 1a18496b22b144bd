/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when it is first needed. */
#ifndef LENSING_WEIGHTS_CURL_LIBRARY_H
#define LENSING_WEIGHTS_CURL_LIBRARY_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <lensing/status.h>

#define LNS_CURL_FUNCTIONS(_)                                                                                          \
    _(global_init)                                                                                                     \
    _(easy_init)                                                                                                       \
    _(easy_setopt)                                                                                                     \
    _(easy_perform)                                                                                                    \
    _(easy_getinfo)                                                                                                    \
    _(easy_cleanup)                                                                                                    \
    _(easy_strerror)                                                                                                   \
    _(slist_append)                                                                                                    \
    _(slist_free_all)                                                                                                  \
    _(url)                                                                                                             \
    _(url_set)                                                                                                         \
    _(url_get)                                                                                                         \
    _(url_cleanup)                                                                                                     \
    _(free)

/* curl_easy_init() is easy_init here, and so on. */
typedef struct lns_curl {
#define DECLARE(name) __typeof__(curl_##name) *name;
    LNS_CURL_FUNCTIONS(DECLARE)
#undef DECLARE
} lns_curl;

lns_status lns_curl_load(const lns_curl **curl);

#endif
