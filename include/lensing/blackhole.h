/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Tenstorrent Blackhole cards: which there are, and whether one is sound.
 *
 * Cards are those of the driver tt-kmd, 2.6.0 or newer, under /dev/tenstorrent. A card is used by one model of one
 * process at a time.
 */
#ifndef LENSING_BLACKHOLE_H
#define LENSING_BLACKHOLE_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A card, as far as it can be known without disturbing who uses it. */
typedef struct lns_blackhole_card {
    int id;             /**< N of /dev/tenstorrent/N: what device_id and TT_DEVICE_ID mean */
    char kind[16];      /**< "Blackhole", "Wormhole" or "unknown"; "" when the card could not be asked */
    char bus[16];       /**< place on the PCI bus, such as "0000:03:00.0"; "" */
    char driver[16];    /**< version of tt-kmd, such as "2.6.0"; "" */
    char firmware[16];  /**< version of the firmware bundle, such as "19.5.0.0"; "" when it does not say */
    int columns;        /**< usable columns of 10 Tensix tiles; Lensing needs 12; 0 when not known */
    int clock_mhz;      /**< of the tiles at this moment; lower while the card rests; 0 when not known */
    double temperature; /**< of the chip in degrees Celsius; 0 when not known */
    int is_in_use;      /**< not 0: a model has it, in this process or another */
    char problem[256];  /**< one line that says why no model can be opened on it, besides being in use; "" if one can */
} lns_blackhole_card;

/** Lists the cards of this machine by their ids. @param cards receives at most @p room of them, of @p struct_size bytes
 * each. @param struct_size sizeof(lns_blackhole_card) as the caller knows it. @param count receives how many there are,
 * at most 64; 0 without the driver, and on other systems than Linux. What is wrong with a card is told in its
 * `problem`. */
LNS_API lns_status lns_blackhole_list(lns_blackhole_card *cards, size_t struct_size, size_t room, size_t *count);

/** A check of a card, step by step. Opaque. */
typedef struct lns_blackhole_selftest lns_blackhole_selftest;

/** How a step ended. */
typedef enum lns_selftest_outcome {
    LNS_SELFTEST_PASSED = 0,
    LNS_SELFTEST_FAILED = 1,
    LNS_SELFTEST_SKIPPED = 2 /**< it was not asked for, makes no sense here, or needs a step that failed */
} lns_selftest_outcome;

/** A step that has been taken. */
typedef struct lns_selftest_step {
    const char *name;     /**< one word, never freed; NULL after the last step */
    const char *question; /**< what the step finds out; never freed */
    lns_selftest_outcome outcome;
    char detail[512]; /**< one line: what was seen, or what went wrong */
    double ms;        /**< how long it took */
} lns_selftest_step;

/** How to check a card. Call lns_blackhole_selftest_options_init() first. */
typedef struct lns_blackhole_selftest_options {
    size_t struct_size;
    int device_id;       /**< N of /dev/tenstorrent/N; -1: TT_DEVICE_ID, or 0 */
    int with_reset;      /**< not 0: restart the chip first, which takes seconds and ends whatever else uses it */
    const char *weights; /**< of the step that runs the network, as in lns_superpoint_options; NULL: the environment
                            decides, and without weights that step is skipped */
} lns_blackhole_selftest_options;

/** Defaults: device_id -1, no reset, weights NULL. */
LNS_API void lns_blackhole_selftest_options_init(lns_blackhole_selftest_options *options);

/** Prepares a check of a card; nothing is done to it yet. With LENSING_TTSIM in the environment, the check is of the
 * simulator that it names. @param options NULL: the defaults. */
LNS_API lns_status lns_blackhole_selftest_open(const lns_blackhole_selftest_options *options,
                                               lns_blackhole_selftest **selftest);

/** Takes the next step. @param struct_size sizeof(lns_selftest_step) as the caller knows it. Returns an error only when
 * the call itself was wrong: that a step failed is in its outcome. */
LNS_API lns_status lns_blackhole_selftest_next(lns_blackhole_selftest *selftest, lns_selftest_step *step,
                                               size_t struct_size);

/** Gives the card back with all of its cores stopped, and sets the pointer to NULL. NULL is ignored. */
LNS_API void lns_blackhole_selftest_close(lns_blackhole_selftest **selftest);

#ifdef __cplusplus
}
#endif
#endif
