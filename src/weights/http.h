/* SPDX-License-Identifier: Apache-2.0 */
/* The two requests that a download from a Hugging Face server needs. */
#ifndef LENSING_WEIGHTS_HTTP_H
#define LENSING_WEIGHTS_HTTP_H

#include <stdint.h>

#include <lensing/status.h>

/* Largest file that is downloaded. */
#define LNS_HTTP_FILE_LIMIT ((uint64_t)1 << 30)
#define LNS_HTTP_TEXT 160

/* Called now and then while a request runs; not 0 stops it. */
typedef int (*lns_http_progress)(void *user, uint64_t received, uint64_t total);

typedef struct lns_http lns_http;

/* `endpoint` is http://... or https://... without a final slash. The token (NULL: none) is sent to its scheme, host and
 * port only. From https, nothing leads to http. */
lns_status lns_http_open(const char *endpoint, const char *token, lns_http_progress progress, void *user,
                         lns_http **http);
void lns_http_close(lns_http **http);

/* What the server says about a file. */
typedef struct lns_http_facts {
    long code;                   /* HTTP status; the rest counts only when `complete` */
    int complete;                /* commit and etag are there */
    char commit[LNS_HTTP_TEXT];  /* X-Repo-Commit */
    char etag[LNS_HTTP_TEXT];    /* X-Linked-Etag, else ETag, without quotes */
    uint64_t size;               /* X-Linked-Size, else Content-Length; 0: not known */
    char message[LNS_HTTP_TEXT]; /* X-Error-Message */
} lns_http_facts;

/* Asks for a file without loading it. */
lns_status lns_http_describe(lns_http *http, const char *url, lns_http_facts *facts);

/* Loads `url` into an open file behind its first `offset` bytes, or from the start when the server cannot continue.
 * @param expected size of the whole file, 0: not known. @param code HTTP status; the file is complete when the result
 * is LNS_OK and the code is 200 or 206. */
lns_status lns_http_download(lns_http *http, const char *url, int fd, const char *path, uint64_t offset,
                             uint64_t expected, long *code);

#endif
