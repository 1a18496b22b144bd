/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables of the server before this one that launchers set. Those that only mean something to its software
 * for cards are checked as it did and otherwise ignored. */
#ifndef LENSING_SERVER_ENVIRONMENT_H
#define LENSING_SERVER_ENVIRONMENT_H

#include <stddef.h>

typedef struct server_environment {
    char *repository; /* HF_MODEL, or the weights inside the library, or the default repository */
    char *revision;   /* TT_WEIGHTS_REVISION, or NULL */
    char *local_dir;  /* SP_WEIGHTS_DIR, or NULL */
    int device_id;    /* TT_DEVICE_ID */
    int is_blackhole; /* LENSING_BACKEND: launchers that give no options can ask for a card with it */
} server_environment;

/* Returns 0, or -1 with a reason. */
int server_environment_read(server_environment *e, char *reason, size_t size);
void server_environment_clear(server_environment *e);

#endif
