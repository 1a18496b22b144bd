/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes files and writes their planes, for comparison with another decoder.
 *
 *   decode_plane [--exif apply] [--max-pixels N] FILE   one file: "WIDTH HEIGHT\n" and the bytes, or on standard error
 *                                                       "status: message" and exit code 1
 *   decode_plane [options] --many                       paths from standard input, one a line; the answer to each is
 *                                                       "ok WIDTH HEIGHT ORIENTATION\n" and the bytes, or
 *                                                       "error STATUS MESSAGE\n" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/image.h>

static void write_bytes(const lns_plane *plane) {
    for (uint32_t y = 0; y < plane->height; y++)
        fwrite(plane->data + y * plane->stride, 1, plane->width, stdout);
}

static int decode_one(const char *path, const lns_image_options *options) {
    lns_plane *plane = NULL;
    const lns_status status = lns_plane_read(path, options, &plane);
    if (status != LNS_OK) {
        fprintf(stderr, "%s: %s\n", lns_status_name(status), lns_error_message());
        return 1;
    }
    printf("%u %u\n", plane->width, plane->height);
    write_bytes(plane);
    lns_plane_close(&plane);
    return 0;
}

static int decode_many(const lns_image_options *options) {
    char path[4096];
    while (fgets(path, sizeof path, stdin) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        lns_plane *plane = NULL;
        const lns_status status = lns_plane_read(path, options, &plane);
        if (status == LNS_OK) {
            printf("ok %u %u %d\n", plane->width, plane->height, plane->exif_orientation);
            write_bytes(plane);
        } else {
            printf("error %s %s\n", lns_status_name(status), lns_error_message());
        }
        fflush(stdout);
        lns_plane_close(&plane);
    }
    return 0;
}

int main(int count, char **arguments) {
    lns_image_options options;
    lns_image_options_init(&options);
    const char *path = NULL;
    int many = 0;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--exif") == 0 && i + 1 < count)
            options.exif = strcmp(arguments[++i], "apply") == 0 ? LNS_EXIF_APPLY : LNS_EXIF_IGNORE;
        else if (strcmp(arguments[i], "--max-pixels") == 0 && i + 1 < count)
            options.max_pixels = strtoull(arguments[++i], NULL, 10);
        else if (strcmp(arguments[i], "--many") == 0)
            many = 1;
        else
            path = arguments[i];
    }
    if (many)
        return decode_many(&options);
    if (path == NULL) {
        fprintf(stderr, "usage: decode_plane [--exif apply] [--max-pixels N] FILE | --many\n");
        return 2;
    }
    return decode_one(path, &options);
}
