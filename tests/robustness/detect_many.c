/* SPDX-License-Identifier: Apache-2.0 */
/* Damages picture files in many ways and puts each result through the library.
 *
 *   detect_many [--seed N] [--first N] [--cases N] [--weights FILE] [--detect-every N] [--max-pixels N]
 *               [--seconds-per-case N] [--rss-limit MB] [--save FILE] PICTURE...
 *   detect_many --whole PICTURE...
 *
 * --whole decodes every file undamaged. Otherwise: a case is a number: with the seed it fixes the file and the damage,
 * so `--first N --cases 1` repeats one, and `--save` keeps its bytes. Every case is decoded. With --weights, every N-th
 * case that decodes also goes through a whole detection (the network is slow under a sanitizer). Prints how often each
 * status came. Ends with 1 when the library broke a promise, and by a signal when decoding takes more than
 * --seconds-per-case of CPU time or something crashes. */
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <lensing/lensing.h>

typedef struct run_settings {
    uint64_t seed;
    uint64_t first;
    uint64_t cases;
    uint64_t detect_every;
    uint64_t max_pixels;
    uint64_t seconds_per_case;
    uint64_t rss_limit_mb;
    int whole;
    const char *weights;
    const char *save;
} run_settings;

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

typedef struct status_counts {
    uint64_t by_status[LNS_ERROR_SYSTEM + 1];
    uint64_t detected;
} status_counts;

/* CPU time that a whole detection may take under a sanitizer. */
#define NETWORK_SECONDS 120

/* What the signal handler prints. */
static char current_case[256];

static void die(const char *what, const char *value) {
    fprintf(stderr, "detect_many: %s%s\n", what, value);
    exit(2);
}

static void *allocate(size_t size) {
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL)
        die("out of memory", "");
    return memory;
}

/* SplitMix64: a full-period generator that takes any seed. */
static uint64_t random_next(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t random_below(uint64_t *state, size_t limit) {
    return limit > 0 ? (size_t)(random_next(state) % limit) : 0;
}

/* Half of the places are in the first 512 bytes, where the headers are. */
static size_t random_place(uint64_t *state, size_t size) {
    return random_below(state, size > 512 && random_next(state) % 2 == 0 ? 512 : size);
}

static void truncate_file(uint64_t *state, bytes *file) {
    file->size = random_place(state, file->size);
}

static void flip_bits(uint64_t *state, bytes *file) {
    const size_t flips = 1 + random_below(state, 8);
    for (size_t i = 0; i < flips && file->size > 0; i++)
        file->data[random_place(state, file->size)] ^= (uint8_t)(1u << random_below(state, 8));
}

static void zero_range(uint64_t *state, bytes *file) {
    const size_t start = random_place(state, file->size);
    const size_t length = 1 + random_below(state, 64);
    const size_t rest = file->size - start;
    memset(file->data + start, 0, length < rest ? length : rest);
}

static void overwrite_range(uint64_t *state, bytes *file) {
    const size_t start = random_place(state, file->size);
    const size_t length = 1 + random_below(state, 16);
    for (size_t i = start; i < file->size && i < start + length; i++)
        file->data[i] = (uint8_t)random_next(state);
}

static void swap_chunks(uint64_t *state, bytes *file) {
    const size_t length = 1 + random_below(state, file->size / 4 < 256 ? file->size / 4 : 256);
    if (file->size < 2 * length)
        return;
    const size_t a = random_below(state, file->size - length + 1);
    const size_t b = random_below(state, file->size - length + 1);
    for (size_t i = 0; i < length; i++) {
        const uint8_t kept = file->data[a + i];
        file->data[a + i] = file->data[b + i];
        file->data[b + i] = kept;
    }
}

static void remove_range(uint64_t *state, bytes *file) {
    const size_t start = random_place(state, file->size);
    const size_t rest = file->size - start;
    const size_t length = 1 + random_below(state, 64);
    const size_t removed = length < rest ? length : rest;
    memmove(file->data + start, file->data + start + removed, rest - removed);
    file->size -= removed;
}

static void (*const damages[])(uint64_t *state, bytes *file) = {
    truncate_file, flip_bits, flip_bits, zero_range, overwrite_range, swap_chunks, remove_range,
};

/* The damaged copy lies in a buffer of exactly its size, so that a sanitizer sees any read beyond its end. */
static bytes make_case(const run_settings *settings, uint64_t number, const bytes *files, size_t file_count,
                       size_t *file_index) {
    uint64_t state = settings->seed * UINT64_C(0x2545f4914f6cdd1d) + number;
    *file_index = settings->whole ? (size_t)number : random_below(&state, file_count);
    const bytes *file = &files[*file_index];
    bytes work = {allocate(file->size), file->size};
    memcpy(work.data, file->data, file->size);
    const size_t rounds = settings->whole ? 0 : 1 + random_below(&state, 2);
    for (size_t i = 0; i < rounds && work.size > 0; i++)
        damages[random_below(&state, sizeof damages / sizeof damages[0])](&state, &work);
    bytes exact = {allocate(work.size), work.size};
    memcpy(exact.data, work.data, work.size);
    free(work.data);
    return exact;
}

static void check(int holds, const char *promise) {
    if (holds)
        return;
    fprintf(stderr, "detect_many: %s: broken promise: %s; message: %s\n", current_case, promise, lns_error_message());
    exit(1);
}

static void check_error(const void *result) {
    const char *message = lns_error_message();
    check(result == NULL, "an error gives no result");
    check(message[0] != '\0' && strchr(message, '\n') == NULL, "an error has a message of one line");
}

/* Reads every pixel, so that a sanitizer or valgrind can see unset or missing memory. */
static void check_plane(const lns_plane *plane, uint64_t max_pixels) {
    check(plane->width >= 1 && plane->height >= 1 && plane->stride >= plane->width, "a plane has a size");
    check((uint64_t)plane->width * plane->height <= max_pixels, "a plane has at most max_pixels");
    unsigned sum = 0;
    for (uint32_t y = 0; y < plane->height; y++)
        for (uint32_t x = 0; x < plane->width; x++)
            sum += plane->data[y * plane->stride + x];
    volatile unsigned used = sum;
    (void)used;
}

static void check_features(const lns_features *features) {
    check(features->count <= 1024, "at most max_keypoints keypoints");
    for (size_t i = 0; i < features->count; i++) {
        const float x = features->keypoints[2 * i], y = features->keypoints[2 * i + 1];
        check(x >= 0 && x < (float)features->image_width && y >= 0 && y < (float)features->image_height,
              "keypoints are inside the picture");
        check(features->scores[i] > 0 && features->scores[i] <= 1, "scores are in (0, 1]");
    }
}

/* Ends the process when a case takes more than so much CPU time; of the clock it gets ten times as much, so that a busy
 * machine is no failure and a deadlock is one. */
static void start_watch(uint64_t seconds) {
    const struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    setitimer(ITIMER_PROF, &timer, NULL);
    alarm((unsigned)seconds * 10);
}

static void stop_watch(void) {
    start_watch(0);
}

static void detect(lns_superpoint *model, const bytes *file, const lns_image_options *image, status_counts *counts) {
    lns_detect_options options;
    lns_detect_options_init(&options);
    options.image = image;
    lns_features *features = NULL;
    start_watch(NETWORK_SECONDS);
    const lns_status status = lns_superpoint_detect_encoded(model, file->data, file->size, &options, &features);
    stop_watch();
    check(status == LNS_OK && features != NULL, "what decodes can be detected in");
    check_features(features);
    lns_features_close(&features);
    counts->detected++;
}

static void run_case(const run_settings *settings, lns_superpoint *model, const bytes *file, status_counts *counts) {
    lns_image_options image;
    lns_image_options_init(&image);
    image.max_pixels = settings->max_pixels;
    lns_plane *plane = NULL;
    start_watch(settings->seconds_per_case);
    const lns_status status = lns_plane_decode(file->data, file->size, &image, &plane);
    stop_watch();
    check(status >= LNS_OK && status <= LNS_ERROR_SYSTEM, "a status is one of the list");
    counts->by_status[status]++;
    if (status != LNS_OK) {
        check_error(plane);
        return;
    }
    check_plane(plane, settings->max_pixels);
    lns_plane_close(&plane);
    if (model != NULL && counts->by_status[LNS_OK] % settings->detect_every == 1 % settings->detect_every)
        detect(model, file, &image, counts);
}

static uint64_t peak_rss_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    return (uint64_t)usage.ru_maxrss / (1024 * 1024);
#else
    return (uint64_t)usage.ru_maxrss / 1024;
#endif
}

/* Names the case and lets the signal do what it does. */
static void on_signal(int number) {
    static const char text[] = "detect_many: ended by a signal in ";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    written = write(STDERR_FILENO, current_case, strlen(current_case));
    written = write(STDERR_FILENO, "\n", 1);
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

/* A sanitizer handles memory faults itself, and then aborts. */
static void watch_signals(void) {
    signal(SIGALRM, on_signal);
    signal(SIGPROF, on_signal);
    signal(SIGABRT, on_signal);
#if !defined(__SANITIZE_ADDRESS__)
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGFPE, on_signal);
    signal(SIGILL, on_signal);
#endif
}

static bytes read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        die("cannot read ", path);
    const long size = ftell(file);
    if (size <= 0)
        die("empty or not a file: ", path);
    bytes result = {allocate((size_t)size), (size_t)size};
    rewind(file);
    if (fread(result.data, 1, result.size, file) != result.size)
        die("cannot read ", path);
    fclose(file);
    return result;
}

static void save_file(const char *path, const bytes *file) {
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(file->data, 1, file->size, out) != file->size || fclose(out) != 0)
        die("cannot write ", path);
}

static uint64_t parse_number(const char *text) {
    char *end = NULL;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0')
        die("not a number: ", text);
    return value;
}

static run_settings parse_settings(int argc, char **argv) {
    run_settings settings = {
        .seed = 1,
        .cases = 1000,
        .detect_every = 100,
        .max_pixels = UINT64_C(1) << 24,
        .seconds_per_case = 20,
        .rss_limit_mb = 2048,
    };
    static const struct option options[] = {
        {"seed", required_argument, NULL, 0},
        {"first", required_argument, NULL, 0},
        {"cases", required_argument, NULL, 0},
        {"detect-every", required_argument, NULL, 0},
        {"max-pixels", required_argument, NULL, 0},
        {"seconds-per-case", required_argument, NULL, 0},
        {"rss-limit", required_argument, NULL, 0},
        {"weights", required_argument, NULL, 'w'},
        {"save", required_argument, NULL, 's'},
        {"whole", no_argument, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };
    /* In the order of the options. */
    uint64_t *const numbers[] = {
        &settings.seed,         &settings.first,      &settings.cases,
        &settings.detect_every, &settings.max_pixels, &settings.seconds_per_case,
        &settings.rss_limit_mb,
    };
    int option, index;
    while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
        if (option == 0)
            *numbers[index] = parse_number(optarg);
        else if (option == 'w')
            settings.weights = optarg;
        else if (option == 's')
            settings.save = optarg;
        else if (option == 'a')
            settings.whole = 1;
        else
            exit(2);
    }
    if (optind == argc || settings.detect_every == 0)
        die("usage: detect_many [OPTION...] PICTURE...", "");
    if (settings.whole)
        settings.cases = (uint64_t)(argc - optind);
    return settings;
}

static lns_superpoint *open_model(const char *weights) {
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = weights;
    options.threads = 1;
    lns_superpoint *model = NULL;
    if (lns_superpoint_open(&options, &model) != LNS_OK)
        die("cannot open the weights: ", lns_error_message());
    return model;
}

static void print_counts(const status_counts *counts) {
    for (int status = LNS_OK; status <= LNS_ERROR_SYSTEM; status++)
        if (counts->by_status[status] > 0)
            printf("%s %llu\n", lns_status_name((lns_status)status), (unsigned long long)counts->by_status[status]);
    printf("detected %llu\n", (unsigned long long)counts->detected);
    printf("peak_rss_mb %llu\n", (unsigned long long)peak_rss_mb());
}

int main(int argc, char **argv) {
    const run_settings settings = parse_settings(argc, argv);
    const size_t file_count = (size_t)(argc - optind);
    bytes *files = allocate(file_count * sizeof *files);
    for (size_t i = 0; i < file_count; i++)
        files[i] = read_file(argv[optind + (int)i]);
    lns_superpoint *model = settings.weights != NULL ? open_model(settings.weights) : NULL;
    watch_signals();

    status_counts counts = {{0}, 0};
    for (uint64_t number = settings.first; number < settings.first + settings.cases; number++) {
        size_t index;
        bytes file = make_case(&settings, number, files, file_count, &index);
        snprintf(current_case, sizeof current_case, "case %llu of seed %llu, %zu bytes, from %.150s",
                 (unsigned long long)number, (unsigned long long)settings.seed, file.size, argv[optind + (int)index]);
        if (settings.save != NULL)
            save_file(settings.save, &file);
        run_case(&settings, model, &file, &counts);
        free(file.data);
        check(peak_rss_mb() <= settings.rss_limit_mb, "memory stays below --rss-limit");
    }

    lns_superpoint_close(&model);
    for (size_t i = 0; i < file_count; i++)
        free(files[i].data);
    free(files);
    print_counts(&counts);
    return 0;
}
