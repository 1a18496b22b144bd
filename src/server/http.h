/* SPDX-License-Identifier: Apache-2.0 */
/* The network side of the server. */
#ifndef LENSING_SERVER_HTTP_H
#define LENSING_SERVER_HTTP_H

#include "request.h"

typedef struct http http;

typedef struct http_options {
    server *server;
    int socket; /* listening; becomes the daemon's */
    const server_limits *limits;
    const char *api_key; /* or NULL */
    engine *engine;
    metrics *metrics;
} http_options;

/* NULL on failure; *error is an errno then. */
http *http_start(const http_options *options, int *error);
/* No new connections; open ones go on. */
void http_stop_listening(http *self);
/* Requests that are read, worked on, or being answered. */
size_t http_unfinished(const http *self);
size_t http_connections(const http *self);
/* Closes all connections. No job of the engine may be left. */
void http_stop(http *self);

http *server_http(const server *s);

#endif
