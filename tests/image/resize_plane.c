/* SPDX-License-Identifier: Apache-2.0 */
/* Resizes raw planes for test_resize.py.
 *
 * resize_plane --levels    prints the kernel sets that this CPU has, one a line
 * resize_plane             reads jobs from stdin until its end: six uint32 (width, height, new width, new height,
 * kernel set, bands), then width x height bytes; writes the new plane of each. The kernel set is the number of an
 * lns_cpu_level, or 255 for lns_plane_resize(); the rows are made in so many calls as bands says. resize_plane --time N
 * the same for one job, N times; writes the shortest time in milliseconds instead of the plane */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/image.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "image/resize.h"

enum { PUBLIC = 255 };

typedef struct job {
    uint32_t width, height, new_width, new_height, level, bands;
} job;

static void fail(const char *what) {
    fprintf(stderr, "resize_plane: %s: %s\n", what, lns_error_message());
    exit(1);
}

static void resize_public(const lns_plane *source, const job *j, uint8_t *target) {
    lns_plane *resized;
    if (lns_plane_resize(source, j->new_width, j->new_height, &resized) != LNS_OK)
        fail("lns_plane_resize");
    for (uint32_t y = 0; y < j->new_height; y++)
        memcpy(target + (size_t)y * j->new_width, resized->data + y * resized->stride, j->new_width);
    lns_plane_close(&resized);
}

static void resize_bands(const lns_plane *source, const job *j, uint8_t *target) {
    for (uint32_t band = 0; band < j->bands; band++) {
        const uint32_t first = (uint32_t)((uint64_t)j->new_height * band / j->bands);
        const uint32_t end = (uint32_t)((uint64_t)j->new_height * (band + 1) / j->bands);
        if (lns_resize_rows(source, j->new_width, j->new_height, (lns_cpu_level)j->level, first, end - first,
                            target + (size_t)first * j->new_width, j->new_width) != LNS_OK)
            fail("lns_resize_rows");
    }
}

static void resize(const lns_plane *source, const job *j, uint8_t *target) {
    if (j->level == PUBLIC)
        resize_public(source, j, target);
    else
        resize_bands(source, j, target);
}

static void run(const job *j, int repeats) {
    const size_t size = (size_t)j->width * j->height, new_size = (size_t)j->new_width * j->new_height;
    uint8_t *pixels = malloc(size), *target = malloc(new_size);
    if (pixels == NULL || target == NULL || fread(pixels, 1, size, stdin) != size)
        fail("no memory or short input");
    const lns_plane source = {.data = pixels, .width = j->width, .height = j->height, .stride = j->width};
    double best = 1e9;
    for (int i = 0; i < repeats; i++) {
        const double start = lns_clock_ms();
        resize(&source, j, target);
        const double took = lns_clock_ms() - start;
        best = took < best ? took : best;
    }
    if (repeats > 1)
        printf("%.4f\n", best);
    else
        fwrite(target, 1, new_size, stdout);
    fflush(stdout);
    free(pixels);
    free(target);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--levels") == 0) {
        for (int i = LNS_CPU_C; i <= (int)lns_cpu_best_level(); i++)
            printf("%s\n", lns_cpu_level_name((lns_cpu_level)i));
        return 0;
    }
    const int repeats = argc == 3 && strcmp(argv[1], "--time") == 0 ? atoi(argv[2]) : 1;
    job j;
    while (fread(&j, sizeof j, 1, stdin) == 1)
        run(&j, repeats);
    return 0;
}
