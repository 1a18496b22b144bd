/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, standard output, and files that appear only when they are complete. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* ---- Messages --------------------------------------------------------------------------------------------------- */

#define MESSAGE_LIMIT 4096

/* A file name must not forge a second line, or speak to the terminal. */
static void replace_controls(char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = ' ';
    }
}

void lns_cli_error(const char *format, ...) {
    char line[MESSAGE_LIMIT] = "lensing: ";
    const size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    replace_controls(line);
    strcat(line, "\n");
    lns_cli_progress_hide();
    /* One call, so that lines of several processes do not mix. Nobody is left to be told of a failure. */
    if (write(STDERR_FILENO, line, strlen(line)) < 0)
        return;
}

/* Takes the quoted name of `subject` out of `message`, which is going to stand behind that name anyway. */
static void remove_subject(char *message, const char *subject) {
    char quoted[MESSAGE_LIMIT];
    if (snprintf(quoted, sizeof quoted, "'%s'", subject) >= (int)sizeof quoted)
        return;
    replace_controls(quoted);
    char *found = strstr(message, quoted);
    if (found == NULL)
        return;
    char *rest = found + strlen(quoted);
    if (found > message && found[-1] == ' ')
        found--;
    else
        rest += strspn(rest, ": ");
    memmove(found, rest, strlen(rest) + 1);
}

void lns_cli_report_message(const char *subject, const char *message) {
    if (subject == NULL) {
        lns_cli_error("%s", message);
        return;
    }
    char text[MESSAGE_LIMIT];
    snprintf(text, sizeof text, "%s", message);
    remove_subject(text, subject);
    lns_cli_error("%s: %s", subject, text);
}

void lns_cli_report(const char *subject) {
    lns_cli_report_message(subject, lns_error_message());
}

int lns_cli_out_of_memory(void) {
    lns_cli_error("out of memory");
    return LNS_CLI_OTHER;
}

int lns_cli_exit_code(lns_status status) {
    switch (status) {
    case LNS_OK:
        return LNS_CLI_OK;
    case LNS_ERROR_INVALID_ARGUMENT:
        return LNS_CLI_USAGE;
    case LNS_ERROR_IO:
        return LNS_CLI_OUTPUT;
    case LNS_ERROR_WEIGHTS:
    case LNS_ERROR_NETWORK:
        return LNS_CLI_WEIGHTS;
    case LNS_ERROR_OUT_OF_MEMORY:
    case LNS_ERROR_FORMAT:
    case LNS_ERROR_CORRUPT:
    case LNS_ERROR_LIMIT:
    case LNS_ERROR_UNSUPPORTED:
    case LNS_ERROR_SYSTEM:
        break;
    }
    return LNS_CLI_OTHER;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

/* Writes all; on failure errno says why: EINTR after an interrupt. */
static bool write_all(int fd, const void *bytes, size_t size) {
    const char *rest = bytes;
    while (size > 0) {
        const ssize_t done = write(fd, rest, size);
        if (done >= 0) {
            rest += done;
            size -= (size_t)done;
        }
        /* A signal shows as a part written, too. Going on would wait for a reader that may never come. */
        if (size > 0 && lns_cli_interrupted()) {
            errno = EINTR;
            return false;
        }
        if (done < 0 && errno != EINTR)
            return false;
    }
    return true;
}

/* Says why writing failed, unless the reader just went away or a person pressed Ctrl-C. */
static int writing_failed(const char *name, int error) {
    if (error == EINTR)
        return LNS_CLI_INTERRUPTED;
    if (error != EPIPE)
        lns_cli_error("cannot write %s: %s", name, strerror(error));
    return LNS_CLI_OUTPUT;
}

int lns_cli_write_stdout(const void *bytes, size_t size) {
    return write_all(STDOUT_FILENO, bytes, size) ? LNS_CLI_OK : writing_failed("standard output", errno);
}

int lns_cli_print(const char *text) {
    return lns_cli_write_stdout(text, strlen(text));
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

static char *copy_text(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* Renaming onto a symbolic link would replace the link instead of the file that it stands for. */
static char *follow_links(const char *path) {
    char *real = realpath(path, NULL);
    return real != NULL ? real : copy_text(path);
}

static bool open_temporary(lns_cli_file *file) {
    const size_t size = strlen(file->path) + 48;
    file->temporary = malloc(size);
    if (file->temporary == NULL) {
        errno = ENOMEM;
        return false;
    }
    for (int i = 0; i < 100; i++) {
        snprintf(file->temporary, size, "%s.tmp-%ld-c%d", file->path, (long)getpid(), i);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0 || errno != EEXIST)
            break;
    }
    return file->fd >= 0;
}

static void forget(lns_cli_file *file) {
    free(file->path);
    free(file->temporary);
    *file = (lns_cli_file){.fd = -1};
}

int lns_cli_file_open(lns_cli_file *file, const char *path) {
    *file = (lns_cli_file){.fd = -1};
    struct stat facts;
    const bool exists = stat(path, &facts) == 0;
    if (exists && S_ISDIR(facts.st_mode)) {
        lns_cli_error("cannot write '%s': it is a folder", path);
        return LNS_CLI_OUTPUT;
    }
    file->path = follow_links(path);
    if (file->path == NULL)
        return lns_cli_out_of_memory();
    bool good;
    if (exists && !S_ISREG(facts.st_mode)) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
        good = file->fd >= 0;
    } else {
        good = open_temporary(file);
    }
    if (!good) {
        lns_cli_error("cannot write '%s': %s", path, strerror(errno));
        forget(file);
        return LNS_CLI_OUTPUT;
    }
    lns_cli_guard_file(file->temporary);
    return LNS_CLI_OK;
}

/* Drops the file, and says why. */
static int file_failed(lns_cli_file *file, int error) {
    char name[MESSAGE_LIMIT];
    snprintf(name, sizeof name, "'%s'", file->path);
    lns_cli_file_abandon(file);
    return writing_failed(name, error);
}

int lns_cli_file_write(lns_cli_file *file, const void *bytes, size_t size) {
    return write_all(file->fd, bytes, size) ? LNS_CLI_OK : file_failed(file, errno);
}

int lns_cli_file_finish(lns_cli_file *file) {
    const int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return file_failed(file, errno);
    if (file->temporary != NULL && rename(file->temporary, file->path) != 0)
        return file_failed(file, errno);
    lns_cli_guard_file(NULL);
    forget(file);
    return LNS_CLI_OK;
}

void lns_cli_file_abandon(lns_cli_file *file) {
    if (file->path == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary != NULL)
        unlink(file->temporary);
    lns_cli_guard_file(NULL);
    forget(file);
}

int lns_cli_file_save(const char *path, const void *bytes, size_t size) {
    lns_cli_file file;
    int code = lns_cli_file_open(&file, path);
    if (code == LNS_CLI_OK)
        code = lns_cli_file_write(&file, bytes, size);
    if (code == LNS_CLI_OK)
        code = lns_cli_file_finish(&file);
    return code;
}

/* ---- Folders ---------------------------------------------------------------------------------------------------- */

bool lns_cli_is_folder(const char *path) {
    const size_t size = strlen(path);
    struct stat facts;
    return (size > 0 && path[size - 1] == '/') || (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode));
}

int lns_cli_make_folder(const char *path, bool *made) {
    struct stat facts;
    *made = false;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return LNS_CLI_OK;
    if (mkdir(path, 0777) != 0) {
        lns_cli_error("cannot make the folder '%s': %s", path, strerror(errno));
        return LNS_CLI_OUTPUT;
    }
    *made = true;
    return LNS_CLI_OK;
}

bool lns_cli_is_special(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode);
}

bool lns_cli_same_file(const char *first, const char *second) {
    struct stat a;
    struct stat b;
    return stat(first, &a) == 0 && stat(second, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
