/* SPDX-License-Identifier: Apache-2.0 */
/* How long it takes to open a model on a card, without what the simulator does meanwhile.
 *
 * LENSING_TTSIM=LIBRARY open_time WEIGHTS   opens and closes the model ten times, and prints the least and the median
 * of the whole time from lns_superpoint_open() to the end of lns_superpoint_prepare(), of the part in the simulator,
 * and of the rest. Exit code 1 when the least of the rest is more than 100 ms: what else runs only makes it longer.
 * timed_sim.so lies beside the program. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/lensing.h>

#include "base/clock.h"

#define OPENINGS 10
#define LIMIT_MS 100

typedef struct times {
    double whole[OPENINGS], simulated[OPENINGS], rest[OPENINGS];
} times;

static void check(lns_status status) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "open_time: %s\n", lns_error_message());
    exit(1);
}

/* The library of that name beside this program, in place of the simulator. */
static void stand_before(const char *program) {
    char path[4096];
    const char *simulator = getenv("LENSING_TTSIM"), *slash = strrchr(program, '/');
    if (simulator == NULL || *simulator == '\0') {
        printf("SKIP: LENSING_TTSIM is not set, no card was opened\n");
        exit(0);
    }
    const int folder = slash != NULL ? (int)(slash - program) : 1;
    snprintf(path, sizeof path, "%.*s/timed_sim.so", folder, slash != NULL ? program : ".");
    setenv("LENSING_TIMED_TTSIM", simulator, 1);
    setenv("LENSING_TTSIM", path, 1);
}

static double simulated_ms(void) {
    static double (*spent)(void);
    if (spent == NULL) {
        void *library = dlopen(getenv("LENSING_TTSIM"), RTLD_NOW | RTLD_NOLOAD);
        *(void **)&spent = library != NULL ? dlsym(library, "timed_sim_ms") : NULL;
        if (spent == NULL) {
            fprintf(stderr, "open_time: %s\n", dlerror());
            exit(1);
        }
    }
    return spent();
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, double *values) {
    qsort(values, OPENINGS, sizeof *values, by_value);
    printf("%-14s least %7.1f ms, median %7.1f ms\n", name, values[0], values[OPENINGS / 2]);
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: open_time WEIGHTS\n");
        return 1;
    }
    stand_before(arguments[0]);
    times t;
    double before = 0;
    for (int i = 0; i < OPENINGS; i++) {
        lns_superpoint_options options;
        lns_superpoint *model;
        lns_superpoint_options_init(&options);
        options.backend = "blackhole";
        options.weights = arguments[1];
        const double start = lns_clock_ms();
        check(lns_superpoint_open(&options, &model));
        check(lns_superpoint_prepare(model));
        t.whole[i] = lns_clock_ms() - start;
        t.simulated[i] = simulated_ms() - before;
        t.rest[i] = t.whole[i] - t.simulated[i];
        lns_superpoint_close(&model);
        before = simulated_ms();
    }
    print("open to ready", t.whole);
    print("in simulator", t.simulated);
    print("the rest", t.rest);
    return t.rest[0] <= LIMIT_MS ? 0 : 1; /* sorted by now */
}
