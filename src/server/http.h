/* SPDX-License-Identifier: Apache-2.0 */
/* The network side of the server. */
#ifndef LENSING_SERVER_HTTP_H
#define LENSING_SERVER_HTTP_H

#include "request.h"

typedef struct http_options {
    server *server;
    int socket; /* listening; becomes the daemon's */
    const server_limits *limits;
    const char *api_key; /* or NULL */
    engine *engine;
    metrics *metrics;
} http_options;

/* Returns 0 or an errno. *result is set before the first request is read, as a request may ask for it. */
int http_start(const http_options *options, http **result);
/* No new connections; open ones go on. */
void http_stop_listening(http *self);
/* Requests that are read, worked on, or being answered. */
size_t http_unfinished(const http *self);
size_t http_connections(const http *self);
/* Closes all connections. No job of the engine may be left. */
void http_stop(http *self);

#endif
