/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar for people: on standard error, and only when that is a terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

#define REDRAW_MS 100.0
#define LINE_LIMIT 512

/* Whether a bar is on the screen now. One thread writes to standard error. */
static bool on_screen;

static void put(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* a terminal that went away needs no bar */
}

void lns_cli_progress_hide(void) {
    if (on_screen)
        put("\r\033[K");
    on_screen = false;
}

void lns_cli_progress_start(lns_cli_progress *progress, const char *label, bool bytes, bool wanted) {
    memset(progress, 0, sizeof *progress);
    progress->shown = wanted && isatty(STDERR_FILENO) == 1;
    progress->bytes = bytes;
    progress->label = label;
    progress->start_ms = lns_cli_clock_ms();
    progress->drawn_ms = -INFINITY;
}

static int terminal_columns(void) {
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

static void format_amount(char *text, size_t size, bool bytes, double amount) {
    if (bytes)
        snprintf(text, size, "%.1f MB", amount / 1e6);
    else
        snprintf(text, size, "%.0f", amount);
}

static void format_rest(char *text, size_t size, double seconds) {
    if (seconds < 3600)
        snprintf(text, size, "%d:%02d left", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, size, "%.1f h left", seconds / 3600);
}

/* "12/40  3.1/s  0:09 left" */
static void format_facts(char *text, size_t size, const lns_cli_progress *progress, uint64_t done, uint64_t total) {
    char so_far[48];
    char all[56] = "";
    char speed[48] = "";
    char rest[48] = "";
    const double seconds = (lns_cli_clock_ms() - progress->start_ms) / 1e3;
    const double rate = seconds > 0 ? (double)done / seconds : 0;
    format_amount(so_far, sizeof so_far, progress->bytes, (double)done);
    if (total > 0) {
        char amount[48];
        format_amount(amount, sizeof amount, progress->bytes, (double)total);
        snprintf(all, sizeof all, "/%s", amount);
    }
    if (done > 0 && progress->bytes)
        snprintf(speed, sizeof speed, "  %.1f MB/s", rate / 1e6);
    else if (done > 0)
        snprintf(speed, sizeof speed, "  %.1f/s", rate);
    if (done > 0 && total > done) {
        char time[40];
        format_rest(time, sizeof time, (double)(total - done) / rate);
        snprintf(rest, sizeof rest, "  %s", time);
    }
    snprintf(text, size, "%s%s%s%s", so_far, all, speed, rest);
}

static void draw(const lns_cli_progress *progress, uint64_t done, uint64_t total) {
    char facts[224];
    char line[LINE_LIMIT];
    char bar[64] = "";
    format_facts(facts, sizeof facts, progress, done, total);
    const int columns = terminal_columns();
    const int room = columns - (int)(strlen(progress->label) + strlen(facts)) - 6;
    const int width = room > 40 ? 40 : room;
    if (total > 0 && width >= 8) {
        const int full = (int)((double)width * (double)(done < total ? done : total) / (double)total);
        int used = 0;
        bar[used++] = '[';
        for (int i = 0; i < width; i++)
            bar[used++] = i < full ? '#' : '.';
        bar[used++] = ']';
        bar[used++] = ' ';
        bar[used] = '\0';
    }
    snprintf(line, sizeof line, "%s %s%s", progress->label, bar, facts);
    if (columns < LINE_LIMIT)
        line[columns - 1] = '\0'; /* a line that wraps could not be taken away */
    put("\r");
    put(line);
    put("\033[K");
    on_screen = true;
}

void lns_cli_progress_update(lns_cli_progress *progress, uint64_t done, uint64_t total) {
    const double now = lns_cli_clock_ms();
    if (!progress->shown || (on_screen && now - progress->drawn_ms < REDRAW_MS))
        return;
    progress->drawn_ms = now;
    draw(progress, done, total);
}

void lns_cli_progress_stop(lns_cli_progress *progress) {
    if (progress->shown)
        lns_cli_progress_hide();
    progress->shown = false;
}
