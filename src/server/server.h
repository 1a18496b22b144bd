/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server, as `lensing serve` runs it. */
#ifndef LENSING_SERVER_SERVER_H
#define LENSING_SERVER_SERVER_H

#include <lensing/superpoint.h>

#include "server_limits.h"

typedef struct server_options {
    const char *host;    /* numeric address to listen on */
    int port;            /* 0: any free one */
    const char *weights; /* NULL: the environment decides */
    int threads;
    lns_precision precision;
    const char *backend; /* "cpu" or "blackhole"; NULL: the environment decides */
    int device_id;       /* the card; -1: the environment decides */
    const char *api_key; /* not NULL: requests need "Authorization: Bearer KEY", but /health and /ready */
    server_limits limits;
} server_options;

/* Loads the model, listens, answers until SIGTERM or SIGINT, and drains. Returns the exit status of the process: 0 after a
 * stop that was asked for, 1 when it cannot listen, 3 when it cannot start for another reason. Logs to standard output
 * and standard error. */
int server_run(const server_options *options);

#endif
