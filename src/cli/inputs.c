/* SPDX-License-Identifier: Apache-2.0 */
/* From arguments to pictures: folders, standard input, and names for what is written. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define STDIN_LIMIT ((size_t)1 << 30)
#define POLL_MS 100

static const char *const endings[] = {"jpg", "jpeg", "jpe", "png", "webp", "tif", "tiff",
                                      "gif", "bmp",  "pbm", "pgm", "ppm",  "pnm"};

const char *lns_cli_input_title(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

static void keep_name(void *name) {
    (void)name; /* the tree does not own its names */
}

/* Puts `name` into the tree; false when it was there already. */
static bool add_name(void **tree, char *name, bool *failed) {
    char **node = tsearch(name, tree, compare_names);
    if (node == NULL)
        *failed = true;
    return node == NULL || *node == name;
}

const lns_cli_input *lns_cli_inputs_repeated(const lns_cli_inputs *inputs) {
    void *tree = NULL;
    bool failed = false;
    const lns_cli_input *repeated = NULL;
    for (size_t i = 0; i < inputs->count && repeated == NULL; i++) {
        if (!add_name(&tree, inputs->items[i].member, &failed))
            repeated = &inputs->items[i];
    }
    tdestroy(tree, keep_name);
    return repeated;
}

/* "a.jpg" for the first a.jpg, "a.jpg.2" for the second one. */
static bool choose_name(void **tree, lns_cli_input *input) {
    const char *slash = strrchr(input->path, '/');
    const char *base = strcmp(input->path, "-") == 0 ? "stdin" : slash != NULL ? slash + 1 : input->path;
    bool failed = false;
    for (int i = 1; !failed; i++) {
        char *name = NULL;
        const int size = i == 1 ? asprintf(&name, "%s", base) : asprintf(&name, "%s.%d", base, i);
        if (size < 0)
            return false;
        if (add_name(tree, name, &failed)) {
            input->name = name;
            return !failed;
        }
        free(name);
    }
    return false;
}

static bool choose_names(lns_cli_inputs *inputs) {
    void *tree = NULL;
    bool good = true;
    for (size_t i = 0; i < inputs->count && good; i++)
        good = choose_name(&tree, &inputs->items[i]);
    tdestroy(tree, keep_name);
    return good;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

/* Takes over `path` and `member`, also on failure; both may be NULL when they could not be allocated. */
static bool add_input(lns_cli_inputs *inputs, char *path, char *member) {
    bool good = path != NULL && member != NULL;
    if (good && inputs->count == inputs->room) {
        const size_t room = inputs->room == 0 ? 16 : 2 * inputs->room;
        lns_cli_input *items = realloc(inputs->items, room * sizeof *items);
        good = items != NULL;
        if (good) {
            inputs->items = items;
            inputs->room = room;
        }
    }
    if (!good) {
        free(path);
        free(member);
        return false;
    }
    inputs->items[inputs->count++] = (lns_cli_input){.path = path, .member = member};
    return true;
}

static bool is_picture_name(const char *name) {
    const char *dot = strrchr(name, '.');
    if (dot == NULL || name[0] == '.')
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (strcasecmp(dot + 1, endings[i]) == 0)
            return true;
    }
    return false;
}

static char *join(const char *folder, const char *name) {
    const size_t size = strlen(folder);
    char *path = NULL;
    const char *between = size > 0 && folder[size - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s", folder, between, name) < 0 ? NULL : path;
}

static bool is_regular(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

static int compare_inputs(const void *a, const void *b) {
    return strcmp(((const lns_cli_input *)a)->path, ((const lns_cli_input *)b)->path);
}

/* `alone`: the folder is all there is, and its pictures are known by their names in it. */
static bool add_folder(lns_cli_inputs *inputs, const char *folder, bool alone) {
    DIR *listing = opendir(folder);
    if (listing == NULL) {
        lns_cli_error("%s: cannot read the folder: %s", folder, strerror(errno));
        inputs->code = LNS_CLI_IMAGE;
        return true;
    }
    const size_t first = inputs->count;
    bool good = true;
    for (const struct dirent *entry; good && (entry = readdir(listing)) != NULL;) {
        if (!is_picture_name(entry->d_name))
            continue;
        char *path = join(folder, entry->d_name);
        if (path != NULL && !is_regular(path))
            free(path);
        else
            good = add_input(inputs, path, alone || path == NULL ? strdup(entry->d_name) : strdup(path));
    }
    closedir(listing);
    if (inputs->count > first)
        qsort(inputs->items + first, inputs->count - first, sizeof *inputs->items, compare_inputs);
    if (good && inputs->count == first) {
        lns_cli_error("%s: the folder holds no image file (.jpg .png .webp .tif .gif .bmp .ppm ...)", folder);
        inputs->code = LNS_CLI_IMAGE;
    }
    return good;
}

static int check_arguments(int count, char *const *arguments) {
    int from_stdin = 0;
    for (int i = 0; i < count; i++) {
        if (arguments[i][0] == '\0') {
            lns_cli_error("the name of an image is empty");
            return LNS_CLI_USAGE;
        }
        if (strcmp(arguments[i], "-") == 0)
            from_stdin++;
    }
    if (from_stdin > 1) {
        lns_cli_error("'-' (standard input) can be given only once");
        return LNS_CLI_USAGE;
    }
    if (from_stdin == 1 && isatty(STDIN_FILENO) == 1) {
        lns_cli_error("'-' reads an image from standard input, but that is a terminal");
        return LNS_CLI_USAGE;
    }
    return LNS_CLI_OK;
}

int lns_cli_inputs_expand(int count, char *const *arguments, lns_cli_inputs *inputs) {
    *inputs = (lns_cli_inputs){0};
    const int code = check_arguments(count, arguments);
    if (code != LNS_CLI_OK)
        return code;
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        struct stat facts;
        if (strcmp(arguments[i], "-") != 0 && stat(arguments[i], &facts) == 0 && S_ISDIR(facts.st_mode))
            good = add_folder(inputs, arguments[i], count == 1);
        else
            good = add_input(inputs, strdup(arguments[i]), strdup(arguments[i]));
    }
    if (good && choose_names(inputs))
        return LNS_CLI_OK;
    lns_cli_inputs_free(inputs);
    return lns_cli_out_of_memory();
}

void lns_cli_inputs_free(lns_cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].path);
        free(inputs->items[i].name);
        free(inputs->items[i].member);
    }
    free(inputs->items);
    inputs->items = NULL;
    inputs->count = inputs->room = 0;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Whether what is being read is still wanted. */
static atomic_bool cancelled;

void lns_cli_cancel_reading(bool cancel) {
    atomic_store(&cancelled, cancel);
}

/* Bytes of one read(), 0 at the end; -1: errno says why. Waits in short steps, because the signal that ends the program
 * interrupts another thread. */
static ssize_t read_some(int fd, void *bytes, size_t size) {
    for (;;) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        const int ready = poll(&waiting, 1, POLL_MS);
        if (lns_cli_interrupted() || atomic_load(&cancelled)) {
            errno = EINTR;
            return -1;
        }
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        const ssize_t got = read(fd, bytes, size);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got;
    }
}

static bool read_all(int fd, void **bytes, size_t *size, char *message, size_t message_size) {
    char *buffer = NULL;
    size_t done = 0;
    size_t room = 0;
    const char *reason = NULL;
    for (ssize_t got = 1; reason == NULL && got > 0;) {
        if (done == room) {
            room = room == 0 ? (size_t)1 << 18 : 2 * room;
            char *larger = room > STDIN_LIMIT ? NULL : realloc(buffer, room);
            if (larger == NULL) {
                reason = room > STDIN_LIMIT ? "it has more than 1 GiB" : "out of memory";
                break;
            }
            buffer = larger;
        }
        got = read_some(fd, buffer + done, room - done);
        if (got < 0)
            reason = errno == EINTR ? "interrupted" : strerror(errno);
        else
            done += (size_t)got;
    }
    if (reason != NULL) {
        free(buffer);
        snprintf(message, message_size, "cannot read: %s", reason);
        return false;
    }
    *bytes = buffer;
    *size = done;
    return true;
}

bool lns_cli_read_bytes(const char *path, void **bytes, size_t *size, char *message, size_t message_size) {
    message[0] = '\0';
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, bytes, size, message, message_size);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(message, message_size, "cannot open: %s", strerror(errno));
        return false;
    }
    const bool good = read_all(fd, bytes, size, message, message_size);
    close(fd);
    return good;
}

lns_status lns_cli_read_plane(const char *path, const lns_image_options *options, lns_plane **plane, char *message,
                              size_t message_size) {
    lns_status status;
    *plane = NULL;
    if (strcmp(path, "-") == 0) {
        void *bytes = NULL;
        size_t size = 0;
        if (!lns_cli_read_bytes(path, &bytes, &size, message, message_size))
            return LNS_ERROR_IO;
        status = lns_plane_decode(bytes, size, options, plane);
        free(bytes);
    } else {
        status = lns_plane_read(path, options, plane);
    }
    snprintf(message, message_size, "%s", status == LNS_OK ? "" : lns_error_message());
    return status;
}
