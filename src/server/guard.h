/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines for connections. libmicrohttpd only knows how long a connection was silent, so a client that sends one byte
 * a second keeps it for ever; this guard closes a connection whose step takes too long in total. It also closes one
 * whose client has gone in the middle of a request: libmicrohttpd does not see an end that came together with the last
 * bytes. */
#ifndef LENSING_SERVER_GUARD_H
#define LENSING_SERVER_GUARD_H

#include <stdbool.h>

typedef struct guard guard;
typedef struct guarded guarded; /* one connection */

/* While there are connections, the guard writes at each tick to `ticker`, an eventfd that does not block. */
guard *guard_create(int ticker);
void guard_destroy(guard *self); /* no connection may be left */

/* A new connection on a socket; NULL when memory is missing (the connection is then not guarded). */
guarded *guard_add(guard *self, int socket);
/* Before the socket is closed. */
void guard_remove(guard *self, guarded *connection);

/* The current step has to end within so many milliseconds; negative: it may take any time. `is_reading`: the step is to
 * read from the client, and ends when the client closes its side. */
void guard_set(guard *self, guarded *connection, double milliseconds, bool is_reading);

#endif
