/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when it is first needed: with its thirty libraries it would add 8 ms to the start of every program.
 */
#ifndef LENSING_WEIGHTS_CURL_LIBRARY_H
#define LENSING_WEIGHTS_CURL_LIBRARY_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <lensing/status.h>

typedef struct lns_curl {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_url) *url;
    __typeof__(curl_url_set) *url_set;
    __typeof__(curl_url_get) *url_get;
    __typeof__(curl_url_cleanup) *url_cleanup;
    __typeof__(curl_free) *free;
} lns_curl;

/* The library stays loaded. */
lns_status lns_curl_load(const lns_curl **curl);

#endif
