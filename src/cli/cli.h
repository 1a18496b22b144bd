/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of the `lensing` program share. The program uses the public headers of the library only.
 *
 * Every command is called with argv[0] = its own name, and returns the exit code of the process. Only data goes to
 * standard output, through lns_cli_write_stdout(); whatever is said to a person goes to standard error, in one line a
 * piece, through lns_cli_error(). */
#ifndef LENSING_CLI_CLI_H
#define LENSING_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lensing/lensing.h>

/* Exit codes; they are documented and never change their meaning. */
enum {
    LNS_CLI_OK = 0,
    LNS_CLI_IMAGE = 1,         /* at least one picture could not be read */
    LNS_CLI_USAGE = 2,         /* a wrong option, argument or environment variable */
    LNS_CLI_WEIGHTS = 3,       /* weights missing, wrong, or not to be downloaded */
    LNS_CLI_OUTPUT = 4,        /* output could not be written */
    LNS_CLI_OTHER = 5,         /* anything else, such as memory */
    LNS_CLI_INTERRUPTED = 130, /* SIGINT or SIGTERM */
};

/* ---- Commands, each with its help text -------------------------------------------------------------------------- */

int lns_cli_detect(int argc, char **argv);
int lns_cli_match(int argc, char **argv);
int lns_cli_fetch(int argc, char **argv);
int lns_cli_info(int argc, char **argv);
int lns_cli_bench(int argc, char **argv);
int lns_cli_serve(int argc, char **argv);
int lns_cli_blackhole_selftest(int argc, char **argv);

/* Each is printed as it stands by `lensing help COMMAND` and `lensing COMMAND --help`: at most 80 columns, a final
 * newline. */
extern const char lns_cli_detect_help[];
extern const char lns_cli_match_help[];
extern const char lns_cli_fetch_help[];
extern const char lns_cli_info_help[];
extern const char lns_cli_bench_help[];
extern const char lns_cli_serve_help[];
extern const char lns_cli_blackhole_selftest_help[];

/* ---- Options (options.c) ---------------------------------------------------------------------------------------- */

typedef enum lns_cli_kind {
    LNS_CLI_END,     /* ends a table */
    LNS_CLI_FLAG,    /* no value; target: int, set to `low` */
    LNS_CLI_INTEGER, /* target: int64_t, low..high */
    LNS_CLI_REAL,    /* target: double, low..high, or above `low` when `open` is set */
    LNS_CLI_TEXT,    /* target: const char *, not empty */
    LNS_CLI_CHOICE,  /* target: int, set to the place of the value among `choices` */
} lns_cli_kind;

typedef struct lns_cli_option {
    lns_cli_kind kind;
    const char *name;    /* without the dashes, such as "max-keypoints" */
    char letter;         /* the same as one letter; 0 when there is none */
    void *target;        /* left as it is when the option is not given */
    double low, high;    /* range of numbers */
    bool open;           /* `low` itself is refused */
    const char *choices; /* such as "json npz hdf5" */
} lns_cli_option;

/* Takes `--name VALUE`, `--name=VALUE`, `-o VALUE`, `-oVALUE`, and arguments in any order; "-" is an argument, and so
 * is everything after "--". The last of equal options counts. The arguments are moved to the front of argv + 1, and
 * their number goes to *count. `help` is what --help and -h print.
 *
 * Returns true to go on. False: the command is over, and *code is its exit code; an error was reported. */
bool lns_cli_parse(int argc, char **argv, const lns_cli_option *options, const char *help, int *count, int *code);

/* Whole text as a number: no blanks, no locale, nothing behind the digits, no NaN. */
bool lns_cli_parse_integer(const char *text, int64_t *value);
bool lns_cli_parse_real(const char *text, double *value);

/* The word of `words` (separated by blanks) that `text` is most likely a slip of, copied into `found`; false when none
 * is near. */
bool lns_cli_suggest(const char *text, const char *words, char *found, size_t size);

/* ---- What commands with a model share (settings.c) -------------------------------------------------------------- */

/* Which model, and what runs it. */
typedef struct lns_cli_model {
    const char *weights;
    int64_t threads, device_id; /* -1: TT_DEVICE_ID */
    int precision;              /* an lns_precision */
    int backend;                /* an lns_cli_backend */
} lns_cli_model;

typedef enum lns_cli_backend { LNS_CLI_CPU, LNS_CLI_BLACKHOLE } lns_cli_backend;

#define LNS_CLI_MODEL_OPTIONS 5

/* The library's defaults, and LNS_CLI_MODEL_OPTIONS rows of a table of options. */
void lns_cli_model_init(lns_cli_model *model);
void lns_cli_model_options(lns_cli_model *model, lns_cli_option *rows);

/* What detect and match share. */
typedef struct lns_cli_settings {
    lns_cli_model model;
    int64_t max_keypoints, nms_radius, max_pixels;
    double keypoint_threshold;
    int exif; /* an lns_exif_mode */
    int quiet;
} lns_cli_settings;

#define LNS_CLI_SETTINGS_OPTIONS (LNS_CLI_MODEL_OPTIONS + 6)

/* The library's defaults. */
void lns_cli_settings_init(lns_cli_settings *settings);
/* Writes LNS_CLI_SETTINGS_OPTIONS rows of a table of options. */
void lns_cli_settings_options(lns_cli_settings *settings, lns_cli_option *rows);
/* The rows of --weights, --threads, --precision, --backend and --device-id alone; the target of the third gets an
 * lns_precision, of the fourth an lns_cli_backend. */
lns_cli_option lns_cli_weights_option(const char **target);
lns_cli_option lns_cli_threads_option(int64_t *target);
lns_cli_option lns_cli_precision_option(int *target);
lns_cli_option lns_cli_backend_option(int *target);
lns_cli_option lns_cli_device_option(int64_t *target);
void lns_cli_settings_image(const lns_cli_settings *settings, lns_image_options *options);
/* `options->image` is left NULL. */
void lns_cli_settings_detect(const lns_cli_settings *settings, lns_detect_options *options);

/* LENSING_CPU names a kernel set that this machine can run. Reports an error otherwise. */
bool lns_cli_check_environment(void);
/* TT_DEVICE_ID, where it counts because `device_id` is -1, is the number of a card. Reports an error otherwise. */
bool lns_cli_check_device(int64_t device_id);
/* Opens a model; reports an error. Returns an exit code. */
int lns_cli_open_model(const lns_cli_model *wanted, lns_superpoint **model);

/* ---- Output (output.c) ------------------------------------------------------------------------------------------ */

/* One line on standard error: "lensing: " and the text, control characters replaced. Takes a progress bar away first.
 */
void lns_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Reports the library's last error of this thread with the name of what it is about, which may be NULL. */
void lns_cli_report(const char *subject);
/* The same with a message kept from another thread. */
void lns_cli_report_message(const char *subject, const char *message);

/* The exit code that fits an error of the library outside the reading of pictures. */
int lns_cli_exit_code(lns_status status);

/* Writes to standard output at once. Returns LNS_CLI_OK, or reports an error (a closed pipe is no news) and returns
 * LNS_CLI_OUTPUT or LNS_CLI_INTERRUPTED. */
int lns_cli_write_stdout(const void *bytes, size_t size);
/* A text that ends with NUL. */
int lns_cli_print(const char *text);
/* Reports it. Returns LNS_CLI_OTHER. */
int lns_cli_out_of_memory(void);

/* A file that grows piece by piece under a temporary name and gets its own at the end; a device or a pipe is written
 * as it is. Errors are reported. */
typedef struct lns_cli_file {
    int fd;          /* -1: not open */
    char *path;      /* where the file goes: links are followed */
    char *temporary; /* NULL for a device or a pipe */
} lns_cli_file;

int lns_cli_file_open(lns_cli_file *file, const char *path);
int lns_cli_file_write(lns_cli_file *file, const void *bytes, size_t size);
int lns_cli_file_finish(lns_cli_file *file);
/* Drops an unfinished file; does nothing to a finished one. */
void lns_cli_file_abandon(lns_cli_file *file);
/* All of that for a whole file. */
int lns_cli_file_save(const char *path, const void *bytes, size_t size);

/* `path` names a folder: it is one, or ends with a slash. */
bool lns_cli_is_folder(const char *path);
/* Makes a folder when it is missing; *made says whether it was. */
int lns_cli_make_folder(const char *path, bool *made);
/* Something exists under the name that is no regular file, such as a device or a pipe. */
bool lns_cli_is_special(const char *path);
/* Both names lead to the same existing file. */
bool lns_cli_same_file(const char *first, const char *second);

/* ---- Text (text.c) ---------------------------------------------------------------------------------------------- */

/* Text that grows. An allocation that fails is remembered, and lns_cli_text_good() says so. */
typedef struct lns_cli_text {
    char *bytes; /* ends with NUL unless NULL */
    size_t size, room;
    bool failed;
} lns_cli_text;

void lns_cli_text_add(lns_cli_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lns_cli_text_append(lns_cli_text *text, const char *bytes, size_t size);
/* A JSON string in quotes; bytes that are not UTF-8 become U+FFFD. NULL gives null. */
void lns_cli_text_json(lns_cli_text *text, const char *value);
/* A number with at most `decimals` digits behind the point, and at least one. */
void lns_cli_text_number(lns_cli_text *text, double value, int decimals);
bool lns_cli_text_good(const lns_cli_text *text);
/* Writes it to standard output, or reports that memory was missing, and frees it. Returns an exit code. */
int lns_cli_text_print(lns_cli_text *text);
void lns_cli_text_free(lns_cli_text *text);

/* ---- Pictures to read (inputs.c) -------------------------------------------------------------------------------- */

typedef struct lns_cli_input {
    char *path;   /* as given, or folder/name; "-" is standard input */
    char *name;   /* of the files that are written for it into a folder, without the ending; unique */
    char *member; /* name inside an HDF5 file */
} lns_cli_input;

typedef struct lns_cli_inputs {
    lns_cli_input *items;
    size_t count, room;
    int code; /* LNS_CLI_IMAGE when a folder was reported as unreadable or empty */
} lns_cli_inputs;

/* Turns the arguments into pictures; a folder stands for the picture files in it, by name. Returns an exit code. */
int lns_cli_inputs_expand(int count, char *const *arguments, lns_cli_inputs *inputs);
void lns_cli_inputs_free(lns_cli_inputs *inputs);
/* The first picture with the `member` of an earlier one; NULL when all differ. */
const lns_cli_input *lns_cli_inputs_repeated(const lns_cli_inputs *inputs);

/* What to call a picture in a message. */
const char *lns_cli_input_title(const char *path);

/* Reads and decodes; "-" is standard input. */
lns_status lns_cli_read_plane(const char *path, const lns_image_options *options, lns_plane **plane, char *message,
                              size_t message_size);
/* Reads all of a file or of standard input into memory from malloc. The message is "" unless it fails. */
bool lns_cli_read_bytes(const char *path, void **bytes, size_t *size, char *message, size_t message_size);
/* Makes a reading of standard input on another thread fail soon, whatever the other end of the pipe does. */
void lns_cli_cancel_reading(bool cancel);

/* ---- Several pictures at a time (detector.c) --------------------------------------------------------------------- */

/* Reads pictures and detects in them on threads of its own, as many at a time as the model has threads, and hands out
 * the results in order. What waits to be taken is limited, and so is the number of decoded pictures. */
typedef struct lns_cli_detector lns_cli_detector;

typedef struct lns_cli_detector_options {
    const lns_cli_inputs *inputs; /* these three must stay until lns_cli_detector_stop() */
    const lns_image_options *image;
    const lns_detect_options *detect;
    int64_t threads; /* of the model; 0: one for each CPU */
    bool draw;       /* make a PNG with the keypoints */
    bool keep_planes;
} lns_cli_detector_options;

/* What was found in one picture; freed with lns_cli_found_free(). */
typedef struct lns_cli_found {
    lns_features *features; /* NULL: `message` says why */
    lns_plane *plane;       /* with keep_planes */
    void *drawing;          /* with draw; NULL: `draw_status` and `message` say why */
    size_t drawing_size;
    lns_status draw_status;
    char message[1024];
} lns_cli_found;

/* Begins to read. Reports an error, and returns an exit code. */
int lns_cli_detector_start(const lns_cli_detector_options *options, lns_cli_detector **detector);
/* Lets it go on to the network. */
void lns_cli_detector_use(lns_cli_detector *detector, lns_superpoint *model);
/* Waits for the result of the next picture, in order; false after the last one and after an interrupt. */
bool lns_cli_detector_next(lns_cli_detector *detector, lns_cli_found *found);
/* Ends the threads, and sets the pointer to NULL. NULL is ignored. */
void lns_cli_detector_stop(lns_cli_detector **detector);
void lns_cli_found_free(lns_cli_found *found);

/* ---- Where the results of detect go (sink.c) -------------------------------------------------------------------- */

typedef enum lns_cli_format { LNS_CLI_JSON, LNS_CLI_NPZ, LNS_CLI_HDF5 } lns_cli_format;

typedef struct lns_cli_sink {
    lns_cli_format format;
    const char *path; /* NULL: standard output */
    bool folder;      /* `path` is a folder, with one file a picture */
    bool made_folder;
    bool descriptors; /* in JSON */
    size_t written;
    lns_cli_file file; /* JSON into one file */
    lns_hdf5 *hdf5;
} lns_cli_sink;

/* All three report errors and return exit codes; after an error the sink is closed and nothing half-done is left. */
int lns_cli_sink_open(lns_cli_sink *sink);
int lns_cli_sink_put(lns_cli_sink *sink, const lns_cli_input *input, const lns_features *features);
int lns_cli_sink_finish(lns_cli_sink *sink);
/* Drops what is not finished. */
void lns_cli_sink_abandon(lns_cli_sink *sink);

/* Path of the file of one picture: `path` itself, or in that folder the picture's name with `ending`. From malloc;
 * NULL: no memory, which was reported. */
char *lns_cli_output_path(const char *path, bool folder, const lns_cli_input *input, const char *ending);

/* ---- Progress (progress.c) -------------------------------------------------------------------------------------- */

/* A bar on standard error, for a terminal only. */
typedef struct lns_cli_progress {
    bool shown;        /* there is a terminal to draw on */
    bool bytes;        /* count bytes, not pieces */
    const char *label; /* at the left; may change between calls */
    double start_ms, drawn_ms;
} lns_cli_progress;

/* `wanted` false: nothing is ever drawn. */
void lns_cli_progress_start(lns_cli_progress *progress, const char *label, bool bytes, bool wanted);
/* `total` 0: not known. Draws ten times a second at most. */
void lns_cli_progress_update(lns_cli_progress *progress, uint64_t done, uint64_t total);
/* Takes the bar away. */
void lns_cli_progress_stop(lns_cli_progress *progress);
/* Takes away what is drawn; the next update draws it again. For whoever writes to standard error. */
void lns_cli_progress_hide(void);

/* ---- The process (process.c) ------------------------------------------------------------------------------------ */

/* Makes sure that descriptors 0, 1 and 2 are taken, ignores SIGPIPE, and catches SIGINT and SIGTERM. */
void lns_cli_process_init(void);
/* The first SIGINT or SIGTERM lets the command end by itself; this says that one came. Check it between pieces of work,
 * and return LNS_CLI_INTERRUPTED. A second signal removes the file named below, and ends the process. */
bool lns_cli_interrupted(void);
/* Before a card is opened. When another program resets it, the driver takes its windows away, and the next access
 * through one is a SIGBUS: a line and LNS_CLI_OTHER then end the process. */
void lns_cli_expect_card(void);
/* The temporary file to remove when the process is ended by force; NULL for none. One at a time. */
void lns_cli_guard_file(const char *path);

/* Milliseconds of a clock that never goes back. */
double lns_cli_clock_ms(void);
/* CPUs that this process may use. */
int lns_cli_cpu_count(void);

#endif
