/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/weights.h>

static const char *value_of(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* The integers in the text: "1x1", "(1, 1)", "[1,1]". Returns how many there are; stores the first two. */
static int find_integers(const char *text, long numbers[2]) {
    int count = 0;
    while (*text != '\0') {
        if (!isdigit((unsigned char)*text)) {
            text++;
            continue;
        }
        char *end;
        const long number = strtol(text, &end, 10);
        if (count < 2)
            numbers[count] = number;
        count++;
        text = end;
    }
    return count;
}

static int check_mesh(char *reason, size_t size) {
    const char *text = getenv("TT_MESH_SHAPE");
    long shape[2];
    if (text == NULL)
        return 0;
    if (find_integers(text, shape) != 2) {
        snprintf(reason, size, "RuntimeError: TT_MESH_SHAPE='%s' is not a mesh shape; expected 'RxC' such as '1x1'", text);
        return -1;
    }
    if (shape[0] != 1 || shape[1] != 1) {
        snprintf(reason, size,
                 "RuntimeError: TT_MESH_SHAPE=%ldx%ld is a multi-chip mesh; this server runs on a single device. "
                 "Serve it with mesh 1x1.",
                 shape[0], shape[1]);
        return -1;
    }
    return 0;
}

static int read_device(server_environment *e, char *reason, size_t size) {
    const char *text = getenv("TT_DEVICE_ID");
    e->device_id = 0;
    if (text == NULL)
        return 0;
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < INT_MIN || number > INT_MAX) {
        snprintf(reason, size, "ValueError: TT_DEVICE_ID='%s' is not an integer", text);
        return -1;
    }
    e->device_id = (int)number;
    return 0;
}

static int read_backend(server_environment *e, char *reason, size_t size) {
    const char *text = value_of("LENSING_BACKEND", "cpu");
    e->is_blackhole = strcmp(text, "blackhole") == 0;
    if (e->is_blackhole || strcmp(text, "cpu") == 0)
        return 0;
    snprintf(reason, size, "ValueError: LENSING_BACKEND='%s' is not cpu or blackhole", text);
    return -1;
}

static int check_stages(char *reason, size_t size) {
    static const char known[] = ",wide,nms,rms,rm,l1,nmsk,kpc,u8,rsz,";
    const char *text = value_of("TT_FUSED_STAGES", NULL);
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        char item[32];
        if (length > 0 && (length > 8 || snprintf(item, sizeof item, ",%.*s,", (int)length, text) < 0 ||
                           strstr(known, item) == NULL)) {
            snprintf(reason, size, "ValueError: TT_FUSED_STAGES names '%.*s'; known are wide, nms, rms, rm, l1, nmsk, kpc, "
                     "u8, rsz", (int)(length < 40 ? length : 40), text);
            return -1;
        }
        text += length + (text[length] == ',');
    }
    return 0;
}

static int check_dispatch(char *reason, size_t size) {
    const char *text = value_of("SP_DISPATCH", "auto");
    if (strcmp(text, "auto") == 0 || strcmp(text, "eth") == 0 || strcmp(text, "worker") == 0)
        return 0;
    snprintf(reason, size, "ValueError: SP_DISPATCH='%s' is not auto, eth or worker", text);
    return -1;
}

/* Weights when HF_MODEL names none, by the rules of lns_weights_locate(). With SP_WEIGHTS_DIR, which hides it, this is
 * the name that the server before this one gave. */
static const char *unnamed_weights(const char *revision, const char *folder) {
    const char *builtin = lns_weights_builtin();
    return builtin != NULL && revision == NULL && folder == NULL ? builtin : LNS_DEFAULT_REPOSITORY;
}

int server_environment_read(server_environment *e, char *reason, size_t size) {
    const char *revision = value_of("TT_WEIGHTS_REVISION", NULL), *folder = value_of("SP_WEIGHTS_DIR", NULL);
    if (check_mesh(reason, size) != 0 || read_device(e, reason, size) != 0 || read_backend(e, reason, size) != 0 ||
        check_stages(reason, size) != 0 || check_dispatch(reason, size) != 0)
        return -1;
    e->repository = strdup(value_of("HF_MODEL", unnamed_weights(revision, folder)));
    e->revision = revision != NULL ? strdup(revision) : NULL;
    e->local_dir = folder != NULL ? strdup(folder) : NULL;
    if (e->repository == NULL || (revision != NULL && e->revision == NULL) || (folder != NULL && e->local_dir == NULL)) {
        snprintf(reason, size, "out of memory");
        return -1;
    }
    return 0;
}

void server_environment_clear(server_environment *e) {
    free(e->repository);
    free(e->revision);
    free(e->local_dir);
    *e = (server_environment){0};
}
