/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lensing/weights.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "weights/builtin.h"
#include "weights/text.h"

#define PART_LIMIT 128
#define REVISION_LIMIT 200
#define REF_LIMIT 256
#define SUFFIX ".safetensors"

static const char safe_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

const char *lns_hub_environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

int lns_hub_is_commit(const char *text) {
    return strlen(text) == 40 && strspn(text, "0123456789abcdefABCDEF") == 40;
}

/* A name that is safe as one part of a path. */
static int is_part(const char *text, size_t length) {
    if (length == 0 || length > PART_LIMIT || strspn(text, safe_characters) < length)
        return 0;
    return !(length == 1 && text[0] == '.') && !(length == 2 && text[0] == '.' && text[1] == '.');
}

int lns_hub_is_part(const char *text) {
    return is_part(text, strlen(text));
}

static int is_repository(const char *text, size_t length) {
    const char *slash = memchr(text, '/', length);
    if (slash == NULL)
        return 0;
    const size_t first = (size_t)(slash - text);
    return is_part(text, first) && is_part(slash + 1, length - first - 1);
}

/* A branch, a tag or a commit id: parts with slashes between them, such as refs/pr/1. */
static int is_revision(const char *text) {
    if (strlen(text) > REVISION_LIMIT)
        return 0;
    for (;;) {
        const size_t length = strcspn(text, "/");
        if (!is_part(text, length))
            return 0;
        if (text[length] == '\0')
            return 1;
        text += length + 1;
    }
}

static lns_status set_revision(const char *revision, const char *source, lns_hub_name *name) {
    if (!is_revision(revision))
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "%s: '%.100s' is not a revision; it must be a branch, a tag or a commit id", source, revision);
    name->revision = lns_strdup(revision);
    return name->revision != NULL ? LNS_OK : lns_fail_memory(strlen(revision));
}

lns_status lns_hub_name_parse(const char *text, lns_hub_name *name) {
    name->repository = NULL;
    name->revision = NULL;
    const char *at = strchr(text, '@');
    const size_t length = at != NULL ? (size_t)(at - text) : strlen(text);
    if (!is_repository(text, length))
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "'%.200s' is not a repository id; it must be ORGANISATION/NAME, perhaps with @REVISION, such "
                        "as " LNS_DEFAULT_REPOSITORY,
                        text);
    name->repository = lns_text_format("%.*s", (int)length, text);
    lns_status status = name->repository != NULL ? LNS_OK : LNS_ERROR_OUT_OF_MEMORY;
    if (status == LNS_OK && at != NULL)
        status = set_revision(at + 1, text, name);
    if (status != LNS_OK)
        lns_hub_name_clear(name);
    return status;
}

lns_status lns_hub_name_from_environment(lns_hub_name *name) {
    const char *model = lns_hub_environment("HF_MODEL");
    const char *revision = lns_hub_environment("TT_WEIGHTS_REVISION");
    lns_status status = lns_hub_name_parse(model != NULL ? model : LNS_DEFAULT_REPOSITORY, name);
    if (status == LNS_OK && revision != NULL && name->revision == NULL)
        status = set_revision(revision, "TT_WEIGHTS_REVISION", name);
    if (status != LNS_OK)
        lns_hub_name_clear(name);
    return status;
}

void lns_hub_name_clear(lns_hub_name *name) {
    lns_free(name->repository);
    lns_free(name->revision);
    name->repository = NULL;
    name->revision = NULL;
}

/* ---- Folders ------------------------------------------------------------------------------------ */

/* Copies a path; a leading "~/" becomes the home folder, as in huggingface_hub. */
static lns_status expand(const char *path, char **expanded) {
    const char *home = lns_hub_environment("HOME");
    if (path[0] != '~' || (path[1] != '/' && path[1] != '\0')) {
        *expanded = lns_text_format("%s", path);
    } else if (home == NULL) {
        *expanded = NULL;
        return lns_fail(LNS_ERROR_SYSTEM, "cannot expand '%s': HOME is not set", path);
    } else {
        *expanded = lns_text_format("%s%s", home, path + 1);
    }
    return *expanded != NULL ? LNS_OK : LNS_ERROR_OUT_OF_MEMORY;
}

/* `base` (which may start with "~/") and `rest`. */
static lns_status join(const char *base, const char *rest, char **path) {
    char *expanded;
    lns_status status = expand(base, &expanded);
    *path = NULL;
    if (status != LNS_OK)
        return status;
    *path = lns_text_format("%s/%s", expanded, rest);
    lns_free(expanded);
    return *path != NULL ? LNS_OK : LNS_ERROR_OUT_OF_MEMORY;
}

lns_status lns_hub_home(char **folder) {
    const char *home = lns_hub_environment("HF_HOME");
    if (home != NULL)
        return expand(home, folder);
    const char *cache = lns_hub_environment("XDG_CACHE_HOME");
    return join(cache != NULL ? cache : "~/.cache", "huggingface", folder);
}

lns_status lns_hub_cache(char **folder) {
    const char *cache = lns_hub_environment("HF_HUB_CACHE");
    if (cache != NULL)
        return expand(cache, folder);
    char *home;
    const lns_status status = lns_hub_home(&home);
    *folder = NULL;
    if (status != LNS_OK)
        return status;
    *folder = lns_text_format("%s/hub", home);
    lns_free(home);
    return *folder != NULL ? LNS_OK : LNS_ERROR_OUT_OF_MEMORY;
}

lns_status lns_hub_repository_folder(const char *repository, char **folder) {
    char *cache;
    const lns_status status = lns_hub_cache(&cache);
    *folder = NULL;
    if (status != LNS_OK)
        return status;
    const int slash = (int)strcspn(repository, "/");
    *folder = lns_text_format("%s/models--%.*s--%s", cache, slash, repository, repository + slash + 1);
    lns_free(cache);
    return *folder != NULL ? LNS_OK : LNS_ERROR_OUT_OF_MEMORY;
}

static int is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static int is_file(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* ---- Locations ---------------------------------------------------------------------------------- */

static lns_status copy(const char *text, char **copied) {
    *copied = text != NULL ? lns_strdup(text) : NULL;
    return text == NULL || *copied != NULL ? LNS_OK : lns_fail_memory(strlen(text));
}

/* Fills a location whose files lie in one folder. */
static lns_status use_folder(const char *folder, lns_weights_location *location) {
    location->safetensors = lns_text_format("%s/" LNS_HUB_WEIGHTS_FILE, folder);
    location->config = lns_text_format("%s/" LNS_HUB_CONFIG_FILE, folder);
    if (location->safetensors == NULL || location->config == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    const char *missing = !is_file(location->safetensors) ? LNS_HUB_WEIGHTS_FILE
                          : !is_file(location->config)    ? LNS_HUB_CONFIG_FILE
                                                          : NULL;
    if (missing == NULL)
        return LNS_OK;
    return lns_fail(LNS_ERROR_WEIGHTS,
                    "'%s' has no file %s; a folder of weights holds " LNS_HUB_CONFIG_FILE " and " LNS_HUB_WEIGHTS_FILE,
                    folder, missing);
}

static int is_path(const char *text) {
    const size_t length = strlen(text);
    const size_t suffix = strlen(SUFFIX);
    return strchr("/.~", text[0]) != NULL || (length > suffix && strcmp(text + length - suffix, SUFFIX) == 0) ||
           is_folder(text) || is_file(text);
}

/* A folder, or a file, which has no config.json: one beside it may belong to something else. */
static lns_status locate_path(const char *text, const char *revision, lns_weights_location *location) {
    char *path;
    lns_status status = expand(text, &path);
    if (status != LNS_OK)
        return status;
    status = copy(text, &location->repository);
    if (status == LNS_OK)
        status = copy(revision, &location->revision);
    if (status == LNS_OK && is_folder(path)) {
        status = copy(path, &location->local_dir);
        if (status == LNS_OK)
            status = use_folder(path, location);
    } else if (status == LNS_OK && is_file(path)) {
        status = copy(path, &location->safetensors);
    } else if (status == LNS_OK) {
        status = lns_fail(
            LNS_ERROR_WEIGHTS,
            "no weights at '%s': there is no such folder or file; weights are a folder with " LNS_HUB_CONFIG_FILE
            " and " LNS_HUB_WEIGHTS_FILE ", a .safetensors file, or a repository id",
            path);
    }
    lns_free(path);
    return status;
}

/* Commit that a branch or tag names in the cache; NULL in `commit` when the cache does not know it. */
static lns_status read_ref(const char *folder, const char *revision, char **commit) {
    *commit = NULL;
    char *path = lns_text_format("%s/refs/%s", folder, revision);
    if (path == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    void *bytes = NULL;
    size_t size = 0;
    lns_status status = is_file(path) ? lns_file_read(path, REF_LIMIT, &bytes, &size) : LNS_OK;
    if (status == LNS_OK && bytes != NULL) {
        char text[REF_LIMIT + 1];
        memcpy(text, bytes, size);
        text[size] = '\0';
        text[strcspn(text, " \t\r\n")] = '\0';
        if (lns_hub_is_part(text))
            status = copy(text, commit);
        else
            status = lns_fail(LNS_ERROR_WEIGHTS, "'%s' is damaged: it does not hold a commit id", path);
    }
    lns_free(bytes);
    lns_free(path);
    return status;
}

/* Folder of a snapshot; a commit id needs no ref. NULL in `snapshot` when it is not in the cache. */
static lns_status find_snapshot(const char *folder, const char *revision, char **snapshot) {
    char *commit = NULL;
    *snapshot = NULL;
    if (!lns_hub_is_commit(revision)) {
        const lns_status status = read_ref(folder, revision, &commit);
        if (status != LNS_OK)
            return status;
    }
    char *path = lns_text_format("%s/snapshots/%s", folder, commit != NULL ? commit : revision);
    lns_free(commit);
    if (path == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    if (is_folder(path))
        *snapshot = path;
    else
        lns_free(path);
    return LNS_OK;
}

static lns_status fail_not_cached(const lns_hub_name *name, const char *folder, const char *missing) {
    const int magic_leap = strcmp(name->repository, LNS_DEFAULT_REPOSITORY) == 0;
    return lns_fail(
        LNS_ERROR_WEIGHTS,
        "weights '%s' (revision %s) are not on this machine: no %s in '%s'; `lensing fetch %s%s%s` downloads "
        "them%s; or name a folder or a .safetensors file",
        name->repository, name->revision != NULL ? name->revision : LNS_HUB_DEFAULT_REVISION, missing, folder,
        name->repository, name->revision != NULL ? "@" : "", name->revision != NULL ? name->revision : "",
        magic_leap ? " (their licence allows academic or non-profit noncommercial research only)" : "");
}

static lns_status locate_cached(const lns_hub_name *name, lns_weights_location *location) {
    char *folder;
    lns_status status = lns_hub_repository_folder(name->repository, &folder);
    if (status != LNS_OK)
        return status;
    const char *revision = name->revision != NULL ? name->revision : LNS_HUB_DEFAULT_REVISION;
    char *snapshot;
    status = find_snapshot(folder, revision, &snapshot);
    if (status == LNS_OK && snapshot == NULL)
        status = fail_not_cached(name, folder, "snapshot");
    if (status == LNS_OK)
        status = use_folder(snapshot, location);
    if (status == LNS_ERROR_WEIGHTS && snapshot != NULL)
        status = fail_not_cached(name, snapshot,
                                 is_file(location->safetensors) ? LNS_HUB_CONFIG_FILE : LNS_HUB_WEIGHTS_FILE);
    lns_free(snapshot);
    lns_free(folder);
    if (status == LNS_OK)
        status = copy(name->repository, &location->repository);
    if (status == LNS_OK)
        status = copy(name->revision, &location->revision);
    return status;
}

static lns_status locate_named(const char *weights, lns_weights_location *location) {
    lns_hub_name name;
    lns_status status = lns_hub_name_parse(weights, &name);
    if (status == LNS_ERROR_INVALID_ARGUMENT && strchr(weights, '@') == NULL)
        status = lns_fail(LNS_ERROR_WEIGHTS,
                          "no weights '%.200s': it is neither a folder or file here nor a repository id such "
                          "as " LNS_DEFAULT_REPOSITORY,
                          weights);
    if (status == LNS_OK)
        status = locate_cached(&name, location);
    lns_hub_name_clear(&name);
    return status;
}

const char *lns_weights_builtin(void) {
    lns_builtin_weights builtin;
    return lns_builtin_weights_find(&builtin) ? builtin.name : NULL;
}

static int is_builtin(const char *text) {
    const char *name = lns_weights_builtin();
    return name != NULL && strcmp(text, name) == 0;
}

static lns_status use_builtin(lns_weights_location *location) {
    return copy(lns_weights_builtin(), &location->repository);
}

static lns_status locate_from_environment(lns_weights_location *location) {
    const char *folder = lns_hub_environment("SP_WEIGHTS_DIR");
    if (folder != NULL && !is_folder(folder))
        return lns_fail(LNS_ERROR_WEIGHTS, "SP_WEIGHTS_DIR='%s' is not a directory", folder);
    if (folder != NULL)
        return locate_path(folder, NULL, location);
    const char *model = lns_hub_environment("HF_MODEL");
    const char *revision = lns_hub_environment("TT_WEIGHTS_REVISION");
    /* A revision alone is one of the default repository. */
    if (model == NULL && revision == NULL)
        model = lns_weights_builtin();
    if (model != NULL && is_builtin(model))
        return use_builtin(location);
    if (model != NULL && is_path(model))
        return locate_path(model, revision, location);
    lns_hub_name name;
    lns_status status = lns_hub_name_from_environment(&name);
    if (status == LNS_OK)
        status = locate_cached(&name, location);
    lns_hub_name_clear(&name);
    return status;
}

/* Room for a location that is filled next. */
static lns_status start(lns_weights_location **location) {
    *location = lns_calloc(1, sizeof **location);
    return *location != NULL ? LNS_OK : lns_fail_memory(sizeof **location);
}

lns_status lns_hub_locate(const lns_hub_name *name, lns_weights_location **location) {
    lns_status status = start(location);
    if (status == LNS_OK)
        status = locate_cached(name, *location);
    if (status != LNS_OK)
        lns_weights_location_close(location);
    return status;
}

lns_status lns_weights_locate(const char *weights, lns_weights_location **location) {
    if (location == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_weights_locate: location must not be NULL");
    lns_status status = start(location);
    if (status != LNS_OK)
        return status;
    if (weights == NULL || *weights == '\0')
        status = locate_from_environment(*location);
    else if (is_builtin(weights))
        status = use_builtin(*location);
    else if (is_path(weights))
        status = locate_path(weights, NULL, *location);
    else
        status = locate_named(weights, *location);
    if (status != LNS_OK)
        lns_weights_location_close(location);
    return status;
}

void lns_weights_location_close(lns_weights_location **pointer) {
    if (pointer == NULL || *pointer == NULL)
        return;
    lns_weights_location *location = *pointer;
    *pointer = NULL;
    lns_free(location->safetensors);
    lns_free(location->config);
    lns_free(location->repository);
    lns_free(location->revision);
    lns_free(location->local_dir);
    lns_free(location);
}
