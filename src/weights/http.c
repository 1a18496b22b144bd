/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/http.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <lensing/version.h>

#include "base/error.h"
#include "base/memory.h"
#include "weights/curl_library.h"
#include "weights/text.h"

#define REDIRECT_LIMIT 8
#define BODY_OF_ERROR_LIMIT 65536 /* of an answer that is not the file */
#define CONNECT_SECONDS 10L
#define STALL_SECONDS 30L /* with less than one byte a second */

typedef enum stop_reason {
    STOP_NONE,
    STOP_ASKED,
    STOP_WRITE,
    STOP_TOO_LONG,
    STOP_WRONG_RANGE,
    STOP_NOISE /* a long body of an answer that is not the file */
} stop_reason;

struct lns_http {
    const lns_curl *curl;
    CURL *easy;
    char *endpoint;
    struct curl_slist *headers;       /* for every server */
    struct curl_slist *token_headers; /* for the endpoint */
    lns_http_progress progress;
    void *user;
    char error[CURL_ERROR_SIZE];
    /* The request that is running. */
    lns_http_facts *facts; /* NULL during a download */
    char plain_etag[LNS_HTTP_TEXT];
    uint64_t plain_size;
    uint64_t range_start;
    int fd;
    uint64_t received, expected, noise;
    int body_started;
    stop_reason stop;
    int write_error;
};

/* ---- Callbacks of libcurl ----------------------------------------------------------------------- */

/* If the header line is `name`: copies its value without blanks and quotes, and returns 1. */
static int header(const char *line, size_t size, const char *name, char *value) {
    const size_t length = strlen(name);
    if (size <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
        return 0;
    line += length + 1;
    size -= length + 1;
    while (size > 0 && strchr(" \t", *line) != NULL) {
        line++;
        size--;
    }
    while (size > 0 && strchr(" \t\r\n", line[size - 1]) != NULL)
        size--;
    if (size >= LNS_HTTP_TEXT)
        size = LNS_HTTP_TEXT - 1;
    memcpy(value, line, size);
    value[size] = '\0';
    return 1;
}

/* W/"abc" and "abc" become abc. */
static void strip_etag(char *etag) {
    const char *start = strncmp(etag, "W/", 2) == 0 ? etag + 2 : etag;
    if (*start == '"')
        start++;
    memmove(etag, start, strlen(start) + 1);
    etag[strcspn(etag, "\"")] = '\0';
}

static uint64_t parse_size(const char *text) {
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && strchr(text, '-') == NULL ? value : 0;
}

/* Headers of answers to a HEAD request: those about the file count in a redirect too, the others do not. */
static void describe_header(lns_http *http, const char *line, size_t size) {
    lns_http_facts *facts = http->facts;
    char value[LNS_HTTP_TEXT];
    if (header(line, size, "X-Linked-Etag", facts->etag))
        strip_etag(facts->etag);
    else if (header(line, size, "ETag", http->plain_etag))
        strip_etag(http->plain_etag);
    else if (header(line, size, "X-Linked-Size", value))
        facts->size = parse_size(value);
    else if (header(line, size, "Content-Length", value))
        http->plain_size = parse_size(value);
    else if (header(line, size, "X-Repo-Commit", value) && facts->commit[0] == '\0')
        memcpy(facts->commit, value, sizeof facts->commit);
    else
        header(line, size, "X-Error-Message", facts->message);
}

static size_t on_header(char *line, size_t one, size_t size, void *context) {
    lns_http *http = context;
    char value[LNS_HTTP_TEXT];
    if (http->facts != NULL)
        describe_header(http, line, one * size);
    else if (header(line, one * size, "Content-Range", value) && strncasecmp(value, "bytes ", 6) == 0)
        http->range_start = strtoull(value + 6, NULL, 10);
    return one * size;
}

/* Looks at the status before the first byte of a body is written. */
static stop_reason start_body(lns_http *http, long code) {
    http->body_started = 1;
    if (code == 206)
        return http->range_start == http->received ? STOP_NONE : STOP_WRONG_RANGE;
    http->received = 0; /* the server sends the file from its start */
    if (ftruncate(http->fd, 0) == 0 && lseek(http->fd, 0, SEEK_SET) == 0)
        return STOP_NONE;
    http->write_error = errno;
    return STOP_WRITE;
}

static stop_reason write_body(lns_http *http, const char *bytes, size_t size) {
    const uint64_t limit = http->expected > 0 ? http->expected : LNS_HTTP_FILE_LIMIT;
    if (size > limit - http->received)
        return STOP_TOO_LONG;
    while (size > 0) {
        const ssize_t done = write(http->fd, bytes, size);
        if (done >= 0) {
            bytes += done;
            size -= (size_t)done;
            http->received += (uint64_t)done;
        } else if (errno != EINTR) {
            http->write_error = errno;
            return STOP_WRITE;
        }
    }
    return STOP_NONE;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *context) {
    lns_http *http = context;
    const size_t size = one * count;
    long code = 0;
    http->curl->easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &code);
    if (code != 200 && code != 206) {
        http->noise += size;
        http->stop = http->noise > BODY_OF_ERROR_LIMIT ? STOP_NOISE : STOP_NONE;
    } else {
        if (!http->body_started)
            http->stop = start_body(http, code);
        if (http->stop == STOP_NONE)
            http->stop = write_body(http, bytes, size);
    }
    return http->stop == STOP_NONE ? size : 0;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up) {
    (void)total;
    (void)now;
    (void)up_total;
    (void)up;
    lns_http *http = context;
    if (http->progress == NULL || http->progress(http->user, http->received, http->expected) == 0)
        return 0;
    http->stop = STOP_ASKED;
    return 1;
}

/* ---- Opening ------------------------------------------------------------------------------------ */

static lns_status add_header(lns_http *http, struct curl_slist **list, const char *line) {
    struct curl_slist *longer = http->curl->slist_append(*list, line);
    if (longer == NULL)
        return lns_fail_memory(strlen(line));
    *list = longer;
    return LNS_OK;
}

static lns_status make_headers(lns_http *http, const char *token) {
    /* Sizes and ranges count the bytes of the file, not of a compressed form of it. */
    static const char plain[] = "Accept-Encoding: identity";
    lns_status status = add_header(http, &http->headers, plain);
    if (status == LNS_OK)
        status = add_header(http, &http->token_headers, plain);
    if (status != LNS_OK || token == NULL)
        return status;
    char *line = lns_text_format("Authorization: Bearer %s", token);
    if (line == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    status = add_header(http, &http->token_headers, line);
    lns_free(line);
    return status;
}

static void set_options(lns_http *http) {
    const lns_curl *curl = http->curl;
    curl->easy_setopt(http->easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(http->easy, CURLOPT_USERAGENT, "lensing/" LNS_VERSION_STRING);
    curl->easy_setopt(http->easy, CURLOPT_ERRORBUFFER, http->error);
    curl->easy_setopt(http->easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl->easy_setopt(http->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl->easy_setopt(http->easy, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    curl->easy_setopt(http->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(http->easy, CURLOPT_HEADERDATA, http);
    curl->easy_setopt(http->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(http->easy, CURLOPT_WRITEDATA, http);
    curl->easy_setopt(http->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl->easy_setopt(http->easy, CURLOPT_XFERINFODATA, http);
    curl->easy_setopt(http->easy, CURLOPT_NOPROGRESS, 0L);
}

lns_status lns_http_open(const char *endpoint, const char *token, lns_http_progress progress, void *user,
                         lns_http **result) {
    *result = NULL;
    const lns_curl *curl;
    lns_status status = lns_curl_load(&curl);
    if (status != LNS_OK)
        return status;
    lns_http *http = lns_calloc(1, sizeof *http);
    if (http == NULL)
        return lns_fail_memory(sizeof *http);
    http->curl = curl;
    http->progress = progress;
    http->user = user;
    http->endpoint = lns_strdup(endpoint);
    http->easy = curl->easy_init();
    if (http->endpoint == NULL || http->easy == NULL)
        status = lns_fail_memory(strlen(endpoint));
    if (status == LNS_OK)
        status = make_headers(http, token);
    if (status == LNS_OK)
        set_options(http);
    else
        lns_http_close(&http);
    *result = http;
    return status;
}

void lns_http_close(lns_http **pointer) {
    lns_http *http = *pointer;
    *pointer = NULL;
    if (http == NULL)
        return;
    if (http->easy != NULL)
        http->curl->easy_cleanup(http->easy);
    http->curl->slist_free_all(http->headers);
    http->curl->slist_free_all(http->token_headers);
    lns_free(http->endpoint);
    lns_free(http);
}

/* ---- Requests ----------------------------------------------------------------------------------- */

/* Whether both URLs have the same value of one part. */
static int same_part(const lns_curl *curl, CURLU *first, CURLU *second, CURLUPart part) {
    char *a = NULL;
    char *b = NULL;
    const int same = curl->url_get(first, part, &a, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                     curl->url_get(second, part, &b, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(a, b) == 0;
    curl->free(a);
    curl->free(b);
    return same;
}

static int is_endpoint(const lns_http *http, const char *url) {
    const lns_curl *curl = http->curl;
    CURLU *first = curl->url();
    CURLU *second = curl->url();
    const int same =
        first != NULL && second != NULL && curl->url_set(first, CURLUPART_URL, http->endpoint, 0) == CURLUE_OK &&
        curl->url_set(second, CURLUPART_URL, url, 0) == CURLUE_OK && same_part(curl, first, second, CURLUPART_SCHEME) &&
        same_part(curl, first, second, CURLUPART_HOST) && same_part(curl, first, second, CURLUPART_PORT);
    curl->url_cleanup(first);
    curl->url_cleanup(second);
    return same;
}

static int is_allowed(const lns_http *http, const char *url) {
    return strncasecmp(url, "https://", 8) == 0 ||
           (strncasecmp(url, "http://", 7) == 0 && strncasecmp(http->endpoint, "http://", 7) == 0);
}

static lns_status fail_stopped(const lns_http *http, const char *url, const char *path) {
    switch (http->stop) {
    case STOP_WRITE:
        return lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(http->write_error));
    case STOP_TOO_LONG:
        return lns_fail(LNS_ERROR_NETWORK, "%s sends more than the %" PRIu64 " bytes that the file may have", url,
                        http->expected > 0 ? http->expected : LNS_HTTP_FILE_LIMIT);
    case STOP_WRONG_RANGE:
        return lns_fail(LNS_ERROR_CORRUPT,
                        "%s sends another part of the file than the one asked for, from byte %" PRIu64, url,
                        http->received);
    case STOP_NOISE:
        return lns_fail(LNS_ERROR_NETWORK, "%s sends something else than the file", url);
    default:
        return lns_fail(LNS_ERROR_NETWORK, "stopped after %" PRIu64 " bytes; the next download continues there",
                        http->received);
    }
}

static lns_status fail_curl(const lns_http *http, const char *url, CURLcode error) {
    const char *text = http->error[0] != '\0' ? http->error : http->curl->easy_strerror(error);
    if (http->facts == NULL && http->body_started)
        return lns_fail(LNS_ERROR_NETWORK,
                        "the connection broke after %" PRIu64 " of %" PRIu64
                        " bytes of %s: %s; the next download continues "
                        "there",
                        http->received, http->expected, url, text);
    return lns_fail(LNS_ERROR_NETWORK, "cannot reach %s: %s", url, text);
}

/* Runs one request; redirects are left to the caller, who knows what each server may be told. */
static lns_status perform(lns_http *http, const char *url, const char *path, long *code) {
    const lns_curl *curl = http->curl;
    if (!is_allowed(http, url))
        return lns_fail(LNS_ERROR_NETWORK, "the server leads to %s; only %s is allowed", url,
                        strncasecmp(http->endpoint, "http://", 7) == 0 ? "http or https" : "https");
    http->error[0] = '\0';
    http->noise = 0;
    http->body_started = 0;
    http->stop = STOP_NONE;
    http->range_start = UINT64_MAX;
    curl->easy_setopt(http->easy, CURLOPT_URL, url);
    curl->easy_setopt(http->easy, CURLOPT_HTTPHEADER, is_endpoint(http, url) ? http->token_headers : http->headers);
    const CURLcode error = curl->easy_perform(http->easy);
    if (http->stop != STOP_NONE)
        return fail_stopped(http, url, path);
    if (error == CURLE_OUT_OF_MEMORY)
        return lns_fail_memory(0);
    if (error != CURLE_OK)
        return fail_curl(http, url, error);
    *code = 0;
    curl->easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, code);
    return LNS_OK;
}

/* Where the last answer leads; NULL when it is no redirect. */
static lns_status redirect(lns_http *http, long code, char **url) {
    char *next = NULL;
    *url = NULL;
    if (code >= 300 && code < 400)
        http->curl->easy_getinfo(http->easy, CURLINFO_REDIRECT_URL, &next);
    if (next == NULL)
        return LNS_OK;
    *url = lns_strdup(next);
    return *url != NULL ? LNS_OK : lns_fail_memory(strlen(next));
}

/* What the answer to a HEAD request tells. Plain headers of a redirect describe the redirect, not the file. */
static void take_plain_headers(lns_http *http) {
    lns_http_facts *facts = http->facts;
    if (facts->code == 200 && facts->etag[0] == '\0')
        memcpy(facts->etag, http->plain_etag, sizeof facts->etag);
    if (facts->code == 200 && facts->size == 0)
        facts->size = http->plain_size;
    facts->complete = facts->commit[0] != '\0' && facts->etag[0] != '\0';
}

lns_status lns_http_describe(lns_http *http, const char *url, lns_http_facts *facts) {
    memset(facts, 0, sizeof *facts);
    http->facts = facts;
    http->received = 0;
    http->expected = 0;
    http->curl->easy_setopt(http->easy, CURLOPT_NOBODY, 1L);
    http->curl->easy_setopt(http->easy, CURLOPT_RANGE, NULL);
    char *at = lns_strdup(url);
    lns_status status = at != NULL ? LNS_OK : lns_fail_memory(strlen(url));
    for (int i = 0; status == LNS_OK && at != NULL && i < REDIRECT_LIMIT; i++) {
        char *next = NULL;
        http->plain_etag[0] = '\0';
        http->plain_size = 0;
        status = perform(http, at, "", &facts->code);
        if (status == LNS_OK)
            take_plain_headers(http);
        /* A renamed repository, say. Another server is not asked: only this one knows the commit. */
        if (status == LNS_OK && !facts->complete)
            status = redirect(http, facts->code, &next);
        lns_free(at);
        at = next;
        if (at != NULL && !is_endpoint(http, at))
            break;
    }
    lns_free(at);
    http->facts = NULL;
    return status;
}

lns_status lns_http_download(lns_http *http, const char *url, int fd, const char *path, uint64_t offset,
                             uint64_t expected, long *code) {
    char range[32];
    snprintf(range, sizeof range, "%" PRIu64 "-", offset);
    http->facts = NULL;
    http->fd = fd;
    http->received = offset;
    http->expected = expected;
    http->curl->easy_setopt(http->easy, CURLOPT_HTTPGET, 1L);
    http->curl->easy_setopt(http->easy, CURLOPT_RANGE, offset > 0 ? range : NULL);
    char *at = lns_strdup(url);
    lns_status status = at != NULL ? LNS_OK : lns_fail_memory(strlen(url));
    for (int i = 0; status == LNS_OK && at != NULL; i++) {
        char *next = NULL;
        status = perform(http, at, path, code);
        if (status == LNS_OK)
            status = redirect(http, *code, &next);
        if (status == LNS_OK && next != NULL && i == REDIRECT_LIMIT)
            status = lns_fail(LNS_ERROR_NETWORK, "%s leads from server to server without end", url);
        lns_free(at);
        at = next;
    }
    lns_free(at);
    if (status == LNS_OK && (*code == 200 || *code == 206) && expected > 0 && http->received != expected)
        status = lns_fail(LNS_ERROR_NETWORK,
                          "%s ended after %" PRIu64 " of %" PRIu64 " bytes; the next download continues there", url,
                          http->received, expected);
    if (status == LNS_OK && (*code == 200 || *code == 206))
        on_progress(http, 0, 0, 0, 0); /* the last word: complete */
    return status;
}
