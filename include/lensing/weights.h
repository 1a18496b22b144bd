/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Where weights come from: the library itself, local files, the Hugging Face cache, and downloads into it.
 */
#ifndef LENSING_WEIGHTS_H
#define LENSING_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Repository of the original weights, whose licence allows academic or non-profit noncommercial research only. It is
 * meant where a repository is needed and none is named: by lns_weights_fetch(), by TT_WEIGHTS_REVISION alone, and by
 * everything in a library that was built without weights. */
#define LNS_DEFAULT_REPOSITORY "magic-leap-community/superpoint"

/** Name of the weights inside the library, such as "lensing-superpoint-v1"; NULL when it was built without. The name
 * can be given wherever weights are named. Never freed. */
LNS_API const char *lns_weights_builtin(void);

/** Weights found on this machine. Free with lns_weights_location_close(). */
typedef struct lns_weights_location {
    char *safetensors; /**< path of the safetensors file; NULL: the weights inside the library */
    char *config;      /**< path of config.json; NULL when there is none (a lone .safetensors file) */
    char *repository;  /**< repository id or path, as asked for, or lns_weights_builtin() */
    char *revision;    /**< revision as asked for; NULL when none was */
    char *local_dir;   /**< folder that was given; NULL when the weights are a file or in the cache */
} lns_weights_location;

/** Finds weights without touching the network.
 *
 * @param weights a folder with config.json and model.safetensors, a .safetensors file, or a repository id with optional
 * "@revision" in the Hugging Face cache. What exists as a folder or file, starts with "/", "." or "~", or ends with
 * ".safetensors" is a path. A lone file is used without the config.json beside it. What lns_weights_builtin() gives
 * means the weights inside the library, also when there is a file of that name. NULL or "": the environment decides:
 * SP_WEIGHTS_DIR (a folder), else HF_MODEL (any of the above; empty counts as unset) with TT_WEIGHTS_REVISION (a commit
 * id; empty = default branch), which alone is one of ::LNS_DEFAULT_REPOSITORY. When none of the three is set, it is the
 * weights inside the library, or ::LNS_DEFAULT_REPOSITORY when there are none.
 *
 * Cache: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub (XDG_CACHE_HOME stands for ~/.cache), in the
 * layout models--ORG--NAME/{refs/NAME, snapshots/COMMIT/FILE}. A commit id is looked up in snapshots directly.
 *
 * @return ::LNS_ERROR_WEIGHTS with a message that names what was looked for, where, and how to get it. */
LNS_API lns_status lns_weights_locate(const char *weights, lns_weights_location **location);

/** Frees a location and sets the pointer to NULL. NULL is ignored. */
LNS_API void lns_weights_location_close(lns_weights_location **location);

/** Called now and then during a download, on the calling thread. @param total 0 when not known.
 * @return not 0 to stop the download. */
typedef int (*lns_fetch_progress)(void *user, const char *file, uint64_t received, uint64_t total);

/** How to download. Call lns_fetch_options_init() first. */
typedef struct lns_fetch_options {
    size_t struct_size;
    const char *repository;      /**< id with optional "@revision"; NULL: what HF_MODEL and TT_WEIGHTS_REVISION say,
                                      else ::LNS_DEFAULT_REPOSITORY */
    lns_fetch_progress progress; /**< NULL for none */
    void *progress_user;
} lns_fetch_options;

/** Defaults: all NULL. */
LNS_API void lns_fetch_options_init(lns_fetch_options *options);

/** Downloads config.json and model.safetensors of a repository into the Hugging Face cache, in its layout. Files that
 * are there already are not loaded again; a broken-off download resumes; sizes and SHA-256 checksums are checked; a
 * file appears under its name only when complete. HF_ENDPOINT (default https://huggingface.co) names the server,
 * HF_TOKEN is sent to it, HF_HUB_OFFLINE refuses. @param location receives what lns_weights_locate() would find now;
 * may be NULL. */
LNS_API lns_status lns_weights_fetch(const lns_fetch_options *options, lns_weights_location **location);

#ifdef __cplusplus
}
#endif
#endif
