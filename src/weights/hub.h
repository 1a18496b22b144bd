/* SPDX-License-Identifier: Apache-2.0 */
/* Names and places of the Hugging Face cache: CACHE/models--ORG--NAME/{refs/BRANCH, snapshots/COMMIT/FILE, blobs/ETAG}.
 */
#ifndef LENSING_WEIGHTS_HUB_H
#define LENSING_WEIGHTS_HUB_H

#include <lensing/status.h>
#include <lensing/weights.h>

#define LNS_HUB_DEFAULT_REVISION "main"
#define LNS_HUB_CONFIG_FILE "config.json"
#define LNS_HUB_WEIGHTS_FILE "model.safetensors"

/* A repository id with a revision. */
typedef struct lns_hub_name {
    char *repository; /* ORG/NAME */
    char *revision;   /* NULL when none was named */
} lns_hub_name;

/* Splits "ORG/NAME@REVISION" and checks both parts: they become parts of paths. */
lns_status lns_hub_name_parse(const char *text, lns_hub_name *name);
/* The same for the environment: HF_MODEL, else the default repository, with TT_WEIGHTS_REVISION. */
lns_status lns_hub_name_from_environment(lns_hub_name *name);
void lns_hub_name_clear(lns_hub_name *name);

/* Value of an environment variable; NULL when it is not set or empty. */
const char *lns_hub_environment(const char *name);
/* A text that is safe as one part of a path. */
int lns_hub_is_part(const char *text);
/* 40 hexadecimal digits. */
int lns_hub_is_commit(const char *text);
/* HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface; freed with lns_free(). */
lns_status lns_hub_home(char **folder);
/* HF_HUB_CACHE, else HF_HOME/hub. */
lns_status lns_hub_cache(char **folder);
/* Folder of a repository in the cache. */
lns_status lns_hub_repository_folder(const char *repository, char **folder);

/* Finds the weights of a repository in the cache. */
lns_status lns_hub_locate(const lns_hub_name *name, lns_weights_location **location);

#endif
