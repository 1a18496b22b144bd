/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the server with their defaults; `lensing serve --help` lists those that can be changed. */
#ifndef LENSING_SERVER_SERVER_LIMITS_H
#define LENSING_SERVER_SERVER_LIMITS_H

#include <stddef.h>
#include <stdint.h>

typedef struct server_limits {
    size_t max_body;            /* bytes of a request body */
    size_t max_body_memory;     /* bytes of all request bodies and answers together */
    uint64_t max_pixels;        /* of a picture */
    unsigned max_connections;
    size_t queue;               /* requests that may wait for the network or be in it */
    double queue_timeout_ms;
    double header_timeout_ms;   /* from the first byte of a request, or the opening of the connection, to its header's end */
    double body_timeout_ms;     /* for a body, plus the time that its size takes at min_rate */
    double write_timeout_ms;    /* for an answer, plus the time that its size takes at min_rate */
    double min_rate;            /* bytes a millisecond */
    unsigned idle_timeout_s;    /* between two requests of a connection */
    double drain_timeout_ms;    /* for requests that are running when the server is asked to stop */
} server_limits;

#define SERVER_DEFAULT_LIMITS                                                                                          \
    {                                                                                                                  \
        .max_body = (size_t)192 << 20, .max_body_memory = (size_t)1 << 30, .max_pixels = 178956970,                    \
        .max_connections = 1024, .queue = 64, .queue_timeout_ms = 30000, .header_timeout_ms = 10000,                   \
        .body_timeout_ms = 30000, .write_timeout_ms = 30000, .min_rate = 64, .idle_timeout_s = 5,                      \
        .drain_timeout_ms = 30000                                                                                      \
    }

/* Not to be changed: sizes of what comes before a body. */
enum {
    SERVER_MAX_TARGET = 8192,        /* bytes of the request target: 414 above */
    SERVER_MAX_HEADER_BYTES = 32768, /* bytes of all header fields: 431 above */
    SERVER_MAX_HEADERS = 100         /* header fields: 431 above */
};

#endif
