/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads into the Hugging Face cache, side by side with huggingface_hub: the same layout, the same locks. */
#include <lensing/weights.h>

#include "base/error.h"
#include "lensing_config.h"

void lns_fetch_options_init(lns_fetch_options *options) {
    if (options != NULL)
        *options = (lns_fetch_options){.struct_size = sizeof *options};
}

#if !LNS_HAVE_CURL

lns_status lns_weights_fetch(const lns_fetch_options *options, lns_weights_location **location) {
    (void)options;
    if (location != NULL)
        *location = NULL;
    return lns_fail(LNS_ERROR_UNSUPPORTED,
                    "this build cannot download: it was made without libcurl and nettle; put the "
                    "weights into the Hugging Face cache by other means");
}

#else

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lensing/features.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "weights/checksum.h"
#include "weights/http.h"
#include "weights/hub.h"
#include "weights/text.h"

#define DEFAULT_ENDPOINT "https://huggingface.co"
#define TOKEN_LIMIT 4096
#define LOCK_POLL_NS 50000000L

typedef struct fetch {
    lns_fetch_options options;
    lns_hub_name name;
    char *endpoint;
    char *cache;
    char *folder; /* of the repository, in the cache */
    int has_token;
    lns_http *http;
    char commit[LNS_HTTP_TEXT]; /* "" until the server told */
    const char *file;           /* that is loaded now */
} fetch;

/* ---- Environment -------------------------------------------------------------------------------- */

static int is_true(const char *text) {
    static const char *const words[] = {"1", "true", "yes", "on"};
    for (size_t i = 0; text != NULL && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return 1;
    return 0;
}

/* HF_TOKEN, else the file where `hf auth login` puts it. NULL when there is none. */
static lns_status read_token(char **token) {
    *token = NULL;
    void *bytes = NULL;
    size_t size = 0;
    const char *set = lns_hub_environment("HF_TOKEN");
    char *text = NULL;
    if (set != NULL) {
        text = lns_text_format("%s", set);
    } else {
        char *home;
        if (lns_hub_home(&home) != LNS_OK)
            return LNS_OK; /* no home, no file */
        char *path = lns_text_format("%s/token", home);
        lns_free(home);
        if (path == NULL)
            return LNS_ERROR_OUT_OF_MEMORY;
        const int there = access(path, R_OK) == 0;
        const lns_status status = there ? lns_file_read(path, TOKEN_LIMIT, &bytes, &size) : LNS_OK;
        lns_free(path);
        if (!there || status != LNS_OK)
            return status;
        text = lns_text_format("%.*s", (int)size, (const char *)bytes);
        lns_free(bytes);
    }
    if (text == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    const size_t start = strspn(text, " \t\r\n");
    const size_t length = strcspn(text + start, " \t\r\n");
    const size_t rest = start + length + strspn(text + start + length, " \t\r\n");
    lns_status status = LNS_OK;
    if (text[rest] != '\0')
        status = lns_fail(LNS_ERROR_INVALID_ARGUMENT, "%s is not a token: it has blanks inside",
                          set != NULL ? "HF_TOKEN" : "the file 'token' in the Hugging Face home");
    memmove(text, text + start, length);
    text[length] = '\0';
    if (status == LNS_OK && length > 0)
        *token = text;
    else
        lns_free(text);
    return status;
}

static lns_status read_endpoint(char **endpoint) {
    const char *text = lns_hub_environment("HF_ENDPOINT");
    *endpoint = NULL;
    if (text == NULL)
        text = DEFAULT_ENDPOINT;
    if (strncasecmp(text, "https://", 8) != 0 && strncasecmp(text, "http://", 7) != 0)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "HF_ENDPOINT='%s' is no URL of a server; it must be like " DEFAULT_ENDPOINT, text);
    size_t length = strlen(text);
    while (text[length - 1] == '/')
        length--;
    *endpoint = lns_text_format("%.*s", (int)length, text);
    return *endpoint != NULL ? LNS_OK : LNS_ERROR_OUT_OF_MEMORY;
}

/* ---- Files -------------------------------------------------------------------------------------- */

/* Makes the folders above the last part of `path`. */
static lns_status make_parents(const char *path) {
    char *part = lns_strdup(path);
    if (part == NULL)
        return lns_fail_memory(strlen(path));
    lns_status status = LNS_OK;
    for (char *slash = strchr(part + 1, '/'); status == LNS_OK && slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            status = lns_fail(LNS_ERROR_IO, "cannot make the folder '%s': %s", part, strerror(errno));
        *slash = '/';
    }
    lns_free(part);
    return status;
}

static int on_progress(void *user, uint64_t received, uint64_t total) {
    const fetch *f = user;
    return f->options.progress != NULL ? f->options.progress(f->options.progress_user, f->file, received, total) : 0;
}

/* Whether `fd` still is the file of that name: the last holder may have removed it. */
static int is_same_file(int fd, const char *path) {
    struct stat open_file;
    struct stat named;
    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 && open_file.st_ino == named.st_ino &&
           open_file.st_dev == named.st_dev;
}

/* Waits until this process alone holds the lock; asks the caller meanwhile whether to go on. */
static lns_status lock(fetch *f, const char *path, int *fd) {
    for (;;) {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*fd < 0)
            return lns_fail(LNS_ERROR_IO, "cannot open the lock '%s': %s", path, strerror(errno));
        const int error = flock(*fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        if (error == 0 && is_same_file(*fd, path))
            return LNS_OK;
        close(*fd);
        *fd = -1;
        if (error != 0 && error != EWOULDBLOCK && error != EINTR)
            return lns_fail(LNS_ERROR_IO, "cannot lock '%s': %s", path, strerror(error));
        if (on_progress(f, 0, 0) != 0)
            return lns_fail(LNS_ERROR_NETWORK, "stopped while another process loads %s", f->file);
        const struct timespec pause = {0, LOCK_POLL_NS};
        nanosleep(&pause, NULL);
    }
}

/* A symbolic link to `target`, in place of whatever has the name. */
static lns_status make_link(const char *target, const char *path) {
    lns_status status = make_parents(path);
    if (status != LNS_OK)
        return status;
    char *temporary = lns_file_temporary_name(path);
    if (temporary == NULL)
        return lns_fail_memory(strlen(path));
    if (symlink(target, temporary) != 0 || rename(temporary, path) != 0) {
        status = lns_fail(LNS_ERROR_IO, "cannot make the link '%s': %s", path, strerror(errno));
        unlink(temporary);
    }
    lns_free(temporary);
    return status;
}

/* ---- One file ----------------------------------------------------------------------------------- */

static int is_hexadecimal(const char *text, size_t length) {
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* Compares a file with the name that the server gave to its content. LNS_ERROR_CORRUPT: another content. */
static lns_status verify(const fetch *f, const lns_http_facts *facts, const char *path) {
    char sum[LNS_CHECKSUM_TEXT];
    struct stat info;
    if (stat(path, &info) != 0)
        return lns_fail(LNS_ERROR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (facts->size > 0 && (uint64_t)info.st_size != facts->size)
        return lns_fail(LNS_ERROR_CORRUPT, "%s has %lld bytes instead of %" PRIu64, f->file, (long long)info.st_size,
                        facts->size);
    const int sha256 = is_hexadecimal(facts->etag, 64);
    if (!sha256 && !is_hexadecimal(facts->etag, 40))
        return LNS_OK; /* a server that uses other names: the size is all there is */
    const lns_status status = sha256 ? lns_checksum_sha256(path, sum) : lns_checksum_git_blob(path, sum);
    if (status != LNS_OK || strcmp(sum, facts->etag) == 0)
        return status;
    return lns_fail(LNS_ERROR_CORRUPT, "%s arrived damaged: its %s is %s, the server announced %s", f->file,
                    sha256 ? "SHA-256" : "git SHA-1", sum, facts->etag);
}

static lns_status explain(const fetch *f, long code, const char *url, const char *message) {
    const char *revision = f->name.revision != NULL ? f->name.revision : LNS_HUB_DEFAULT_REVISION;
    const char *colon = *message != '\0' ? ": " : "";
    switch (code) {
    case 401:
        return lns_fail(LNS_ERROR_NETWORK,
                        "%s does not give out '%s' (HTTP 401%s%s): %s, or there is no such repository", f->endpoint,
                        f->name.repository, colon, message,
                        f->has_token ? "it refused the token of HF_TOKEN" : "it may need a token in HF_TOKEN");
    case 403:
        return lns_fail(LNS_ERROR_NETWORK,
                        "%s does not let this account read '%s' (HTTP 403%s%s): accept its terms at %s/%s%s",
                        f->endpoint, f->name.repository, colon, message, f->endpoint, f->name.repository,
                        f->has_token ? "" : " and set HF_TOKEN");
    case 404:
        return lns_fail(LNS_ERROR_NETWORK, "%s has no file %s in '%s' at revision %s (HTTP 404%s%s)", f->endpoint,
                        f->file, f->name.repository, revision, colon, message);
    case 200:
        return lns_fail(LNS_ERROR_NETWORK,
                        "%s answers without X-Repo-Commit and ETag: HF_ENDPOINT must name a Hugging Face server", url);
    default:
        return lns_fail(LNS_ERROR_NETWORK, "%s answers HTTP %ld%s%s", url, code, colon, message);
    }
}

/* URL of the file; a slash in a revision is part of its name. */
static char *make_url(const fetch *f, const char *revision) {
    char *url = lns_text_format("%s/%s/resolve/", f->endpoint, f->name.repository);
    for (const char *part = revision; url != NULL; part++) {
        const size_t length = strcspn(part, "/");
        const int last = part[length] == '\0';
        char *longer = lns_text_format("%s%.*s%s%s", url, (int)length, part, last ? "/" : "%2F", last ? f->file : "");
        lns_free(url);
        url = longer;
        if (last)
            break;
        part += length;
    }
    return url;
}

static lns_status describe(fetch *f, lns_http_facts *facts) {
    const char *revision = f->name.revision != NULL ? f->name.revision : LNS_HUB_DEFAULT_REVISION;
    char *url = make_url(f, f->commit[0] != '\0' ? f->commit : revision);
    if (url == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    lns_status status = lns_http_describe(f->http, url, facts);
    if (status == LNS_OK && !facts->complete)
        status = explain(f, facts->code, url, facts->message);
    else if (status == LNS_OK && (!lns_hub_is_part(facts->commit) || !lns_hub_is_part(facts->etag)))
        status = lns_fail(LNS_ERROR_NETWORK, "%s names commit '%s' and content '%s', which are no names for files", url,
                          facts->commit, facts->etag);
    else if (status == LNS_OK && facts->size > LNS_HTTP_FILE_LIMIT)
        status = lns_fail(LNS_ERROR_LIMIT, "%s has %" PRIu64 " bytes, more than the limit of %" PRIu64, url,
                          facts->size, LNS_HTTP_FILE_LIMIT);
    lns_free(url);
    if (status == LNS_OK && f->commit[0] == '\0')
        memcpy(f->commit, facts->commit, sizeof f->commit);
    return status;
}

/* Loads what is missing behind the first `offset` bytes of the file `path`. */
static lns_status load_rest(fetch *f, const lns_http_facts *facts, const char *path, uint64_t offset) {
    char *url = make_url(f, f->commit);
    if (url == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    long code = 0;
    lns_status status;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
        status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
    } else if (ftruncate(fd, (off_t)offset) != 0 || lseek(fd, 0, SEEK_END) < 0) {
        status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
        close(fd);
    } else {
        status = lns_http_download(f->http, url, fd, path, offset, facts->size, &code);
        if (fsync(fd) != 0 && status == LNS_OK)
            status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
        if (close(fd) != 0 && status == LNS_OK)
            status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", path, strerror(errno));
        if (status == LNS_OK && code == 416)
            status = lns_fail(LNS_ERROR_CORRUPT, "%s is shorter than what an earlier download left", url);
        if (status == LNS_OK && code != 200 && code != 206)
            status = explain(f, code, url, "");
    }
    lns_free(url);
    return status;
}

/* How much of an earlier download can be used. */
static uint64_t usable_part(const lns_http_facts *facts, const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode) || facts->size == 0)
        return 0;
    return (uint64_t)info.st_size <= facts->size ? (uint64_t)info.st_size : 0;
}

static lns_status load(fetch *f, const lns_http_facts *facts, const char *blob) {
    char *path = lns_text_format("%s.incomplete", blob);
    if (path == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    const uint64_t offset = usable_part(facts, path);
    const int complete = offset > 0 && offset == facts->size;
    lns_status status = complete ? LNS_OK : load_rest(f, facts, path, offset);
    if (status == LNS_OK)
        status = verify(f, facts, path);
    if (status == LNS_ERROR_CORRUPT && offset > 0) { /* the earlier part may be to blame: once more, from the start */
        status = load_rest(f, facts, path, 0);
        if (status == LNS_OK)
            status = verify(f, facts, path);
    }
    if (status == LNS_ERROR_CORRUPT) {
        unlink(path);
        status = lns_fail(LNS_ERROR_NETWORK, "%s", lns_error_message());
    }
    if (status == LNS_OK && rename(path, blob) != 0)
        status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", blob, strerror(errno));
    lns_free(path);
    return status;
}

/* Makes sure that the blob is there and whole. */
static lns_status provide_blob(fetch *f, const lns_http_facts *facts, const char *blob) {
    const char *folder = strrchr(f->folder, '/') + 1;
    char *path = lns_text_format("%s/.locks/%s/%s.lock", f->cache, folder, facts->etag);
    if (path == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    int fd = -1;
    lns_status status = make_parents(path);
    if (status == LNS_OK)
        status = make_parents(blob);
    if (status == LNS_OK)
        status = lock(f, path, &fd);
    if (status == LNS_OK && (access(blob, F_OK) != 0 || verify(f, facts, blob) != LNS_OK))
        status = load(f, facts, blob);
    if (fd >= 0)
        close(fd); /* lets the lock go */
    lns_free(path);
    return status;
}

static lns_status fetch_file(fetch *f, const char *file) {
    f->file = file;
    lns_http_facts facts;
    lns_status status = describe(f, &facts);
    if (status != LNS_OK)
        return status;
    char *blob = lns_text_format("%s/blobs/%s", f->folder, facts.etag);
    char *target = lns_text_format("../../blobs/%s", facts.etag);
    char *path = lns_text_format("%s/snapshots/%s/%s", f->folder, f->commit, file);
    if (blob == NULL || target == NULL || path == NULL)
        status = LNS_ERROR_OUT_OF_MEMORY;
    if (status == LNS_OK)
        status = provide_blob(f, &facts, blob);
    if (status == LNS_OK)
        status = make_link(target, path);
    lns_free(blob);
    lns_free(target);
    lns_free(path);
    return status;
}

/* ---- All ---------------------------------------------------------------------------------------- */

/* Notes which commit a branch or tag names. */
static lns_status write_ref(const fetch *f) {
    const char *revision = f->name.revision != NULL ? f->name.revision : LNS_HUB_DEFAULT_REVISION;
    if (strcmp(revision, f->commit) == 0)
        return LNS_OK;
    char *path = lns_text_format("%s/refs/%s", f->folder, revision);
    if (path == NULL)
        return LNS_ERROR_OUT_OF_MEMORY;
    lns_status status = make_parents(path);
    if (status == LNS_OK)
        status = lns_file_save(path, f->commit, strlen(f->commit));
    lns_free(path);
    return status;
}

static lns_status open_connection(fetch *f) {
    char *token;
    lns_status status = read_token(&token);
    if (status == LNS_OK)
        status = read_endpoint(&f->endpoint);
    if (status == LNS_OK)
        status = lns_http_open(f->endpoint, token, on_progress, f, &f->http);
    f->has_token = token != NULL;
    lns_free(token);
    return status;
}

static lns_status fetch_all(fetch *f) {
    lns_status status = lns_hub_cache(&f->cache);
    if (status == LNS_OK)
        status = lns_hub_repository_folder(f->name.repository, &f->folder);
    if (status == LNS_OK)
        status = open_connection(f);
    if (status == LNS_OK)
        status = fetch_file(f, LNS_HUB_CONFIG_FILE);
    if (status == LNS_OK)
        status = fetch_file(f, LNS_HUB_WEIGHTS_FILE);
    if (status == LNS_OK)
        status = write_ref(f);
    lns_http_close(&f->http);
    lns_free(f->endpoint);
    lns_free(f->cache);
    lns_free(f->folder);
    return status;
}

static lns_status read_options(const lns_fetch_options *given, fetch *f) {
    lns_fetch_options_init(&f->options);
    const lns_status status = lns_options_take(&f->options, sizeof f->options, given, "lns_fetch_options");
    if (status != LNS_OK)
        return status;
    const char *repository = f->options.repository;
    return repository != NULL && *repository != '\0' ? lns_hub_name_parse(repository, &f->name)
                                                     : lns_hub_name_from_environment(&f->name);
}

lns_status lns_weights_fetch(const lns_fetch_options *options, lns_weights_location **location) {
    fetch f = {0};
    lns_weights_location *found = NULL;
    if (location != NULL)
        *location = NULL;
    lns_status status = read_options(options, &f);
    if (status != LNS_OK)
        return status;
    /* What a commit id names never changes. */
    const int there =
        f.name.revision != NULL && lns_hub_is_commit(f.name.revision) && lns_hub_locate(&f.name, &found) == LNS_OK;
    if (!there && is_true(lns_hub_environment("HF_HUB_OFFLINE")))
        status = lns_fail(LNS_ERROR_NETWORK, "HF_HUB_OFFLINE is set, so '%s' is not downloaded; unset it to allow that",
                          f.name.repository);
    else if (!there)
        status = fetch_all(&f);
    if (status == LNS_OK && !there)
        status = lns_hub_locate(&f.name, &found);
    lns_hub_name_clear(&f.name);
    if (location != NULL)
        *location = found;
    else
        lns_weights_location_close(&found);
    return status;
}

#endif
