/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of threads for loops whose rounds are independent. */
#ifndef LENSING_BASE_THREADS_H
#define LENSING_BASE_THREADS_H

#include <stddef.h>

#include <lensing/status.h>

#define LNS_THREADS_LIMIT 256

typedef struct lns_thread_pool lns_thread_pool;

/* One round. `worker` is below lns_thread_pool_size() and differs between rounds that run at the same time. */
typedef void (*lns_task)(void *context, size_t round, int worker);

/* A pool that runs loops on `threads` threads, the caller's among them. */
lns_status lns_thread_pool_create(int threads, lns_thread_pool **pool);
void lns_thread_pool_destroy(lns_thread_pool **pool);
int lns_thread_pool_size(const lns_thread_pool *pool);

/* Calls task(context, i, worker) for every i below `rounds`, and returns when all are done. Which thread takes which
 * round is not defined, so rounds must not depend on each other. Several threads may call at the same time, each for a
 * loop of its own: no more of the pool's threads join them than make as many as the pool has, together with the
 * callers, so that with that many callers each runs its loop alone and nobody waits. In a child of fork(), where only
 * the calling thread lives on, that thread runs all rounds. */
void lns_thread_pool_run(lns_thread_pool *pool, size_t rounds, lns_task task, void *context);

#endif
