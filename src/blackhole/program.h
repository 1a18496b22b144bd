/* SPDX-License-Identifier: Apache-2.0 */
/* What the host and the cores of a tile both know: where things lie in L1, and the program that a tile runs.
 *
 * The host writes descriptors into L1 and rings; core B (kernels/control.c) walks through the steps and lets the three
 * Tensix threads compute. All structs are little-endian words in L1, the same for the compilers of both sides. */
#ifndef LENSING_BLACKHOLE_PROGRAM_H
#define LENSING_BLACKHOLE_PROGRAM_H

#include <stdint.h>

/* ---- L1, 1.5 MiB ---------------------------------------------------------------------------------- */

#define LNS_BH_L1_SIZE 0x180000
#define LNS_BH_CODE_B 0x0000      /* core B begins at address 0 after reset */
#define LNS_BH_CODE_UNPACK 0x4000 /* T0 */
#define LNS_BH_CODE_MATH 0x6000   /* T1 */
#define LNS_BH_CODE_PACK 0x8000   /* T2 */
#define LNS_BH_CODE_END 0xA000
#define LNS_BH_CONTROL 0xA000  /* lns_bh_control */
#define LNS_BH_SCRATCH 0xA100  /* where answers go that nobody reads */
#define LNS_BH_RULES 0xA140    /* lns_bh_rules, by the host */
#define LNS_BH_COUNTERS 0xA200 /* lns_bh_counter[LNS_BH_COUNTER_COUNT] */
#define LNS_BH_COUNTER_COUNT 16
#define LNS_BH_PROGRAM 0xA400 /* steps and what they point to */
#define LNS_BH_PROGRAM_END 0x10000
#define LNS_BH_DATA 0x10000 /* weights and activations, up to the end */

/* ---- Pixels --------------------------------------------------------------------------------------- */

/* A row of 16 numbers is what the matrix unit works on. Activations are planes of 16 channels: plane, row, pixel,
 * channel, in bfloat16. So a run of pixels in a row is a matrix operand as it lies there. */
#define LNS_BH_CHANNELS 16
#define LNS_BH_PIXEL_BYTES 32         /* of a plane in bfloat16 */
#define LNS_BH_PIXEL_BYTES_FLOAT32 64 /* of a plane in float32 */
#define LNS_BH_JOB_PIXELS 64          /* most pixels that are computed at a time: rows of SrcB */
#define LNS_BH_JOB_BLOCKS 4           /* most blocks of 16 output channels at a time: a quarter of SrcA each */
#define LNS_BH_RUNS 8                 /* most runs of pixels in a job */

/* ---- Convolution ---------------------------------------------------------------------------------- */

/* Pixels that are computed together: `in_runs` runs of `in_run` pixels each. Positions count pixels in a plane. */
typedef struct lns_bh_job {
    uint16_t in[LNS_BH_RUNS];  /* where the first tap of the first pixel of a run is */
    uint16_t out[LNS_BH_RUNS]; /* where the first output pixel of a run goes */
} lns_bh_job;

enum {
    LNS_BH_RELU = 1, /* negative sums become 0 */
    LNS_BH_POOL =
        2, /* the largest of 2 x 2: `in_runs` is even and in_run x in_runs is 64. The second half of the pixels
            * of a job are the ones below those of the first half, and 4 pixels become one: 16 in all */
    LNS_BH_FLOAT32 = 4, /* the output is float32, else bfloat16 */
    LNS_BH_ROUND = 8,   /* the output is rounded to the 7 bits that SrcB keeps of it in the phases up to HiFi2 */
};

/* out[o][p] = sum over taps t and input channels i of weight[t][i][o] * in[i][p + tap[t]], and what `flags` say. A bias
 * is a further step of 16 input channels, of a plane of ones behind the last input plane. */
typedef struct lns_bh_convolution {
    uint32_t input;         /* first input plane */
    uint32_t plane_width;   /* pixels in a row of an input plane, with what lies between the rows; at most 255 */
    uint32_t plane_height;  /* rows of it; at most 255; the product is the distance of planes in pixels, at most 8191 */
    uint32_t input_planes;  /* 1..32 */
    uint32_t taps;          /* 1..9 */
    uint32_t tap[9];        /* their distances in pixels from the first one */
    uint32_t bias;          /* 1: there is a plane of ones, of which the first 64 pixels are used; else 0 */
    uint32_t weights;       /* [group][tap, then bias][input plane][block][16 inputs][16 outputs], bfloat16 */
    uint32_t groups;        /* output channels are computed in `groups` groups of `blocks` blocks of 16 */
    uint32_t blocks;        /* 1..LNS_BH_JOB_BLOCKS */
    uint32_t output;        /* first output plane */
    uint32_t output_stride; /* bytes between output planes */
    uint32_t flags;
    uint32_t phases;                             /* 2: HiFi2, 3: HiFi3, 4: HiFi4; see docs/blackhole.md */
    uint32_t in_run, in_runs, out_run, out_runs; /* pixels in a run, a multiple of 8 and 4; and runs in a job */
    uint32_t jobs;                               /* lns_bh_job[job_count] */
    uint32_t job_count;
} lns_bh_convolution;

/* ---- First layer and scores ------------------------------------------------------------------------- */

/* For each of `width` x `height` pixels the 3 x 3 neighbourhood, column by column: row r of column c is channel
 * LNS_BH_COLUMN * c + r of a plane. Channel 3 of each column is 1, those behind the third column are 0. The
 * neighbourhood of pixel (0, 0) begins at `bytes`. */
#define LNS_BH_COLUMN 4
typedef struct lns_bh_image {
    uint32_t bytes, bytes_row; /* gray levels, and the distance of rows of them */
    uint32_t output;
    uint32_t width, height;
} lns_bh_image;

/* Softmax over 65 channels of each cell; the first 64 of them are the scores of its 8 x 8 pixels, row by row. */
typedef struct lns_bh_scores {
    uint32_t logits; /* 5 planes of columns x rows pixels in float32 */
    uint32_t columns, rows;
    uint32_t output, output_row; /* float32; the distance of its rows in bytes */
} lns_bh_scores;

/* ---- Keypoints -------------------------------------------------------------------------------------- */

enum { LNS_BH_WANT_SCORES = 1, LNS_BH_WANT_DESCRIPTORS = 2 };

/* What the host says for each request. */
typedef struct lns_bh_rules {
    uint32_t radius;    /* 1..LNS_BH_LARGEST_RADIUS; 0: no keypoints are looked for */
    uint32_t threshold; /* bits of a float32 that is not negative */
    uint32_t border;
    uint32_t wanted; /* LNS_BH_WANT_... */
} lns_bh_rules;

#define LNS_BH_LARGEST_RADIUS 8

/* Non-maximum suppression: pixels of a block whose score is above the threshold and not below any within the radius.
 * The scores around the block, up to the largest radius, have been fetched; outside of the frame they are 0. */
typedef struct lns_bh_suppression {
    uint32_t scores, scores_row; /* of the block's first pixel, and the distance of rows in bytes */
    uint32_t width, height;
    uint32_t x, y;                      /* of the first pixel in the frame */
    uint32_t frame_width, frame_height; /* for the border */
    uint32_t lists, list_size;          /* where each core leaves its keypoints, and the distance of lists in bytes */
    uint32_t host_low, host_high;       /* of the block's lists in the memory of the host, */
    uint32_t host_tile;                 /* which is that of this tile; LNS_BH_NOC_TILE */
} lns_bh_suppression;

typedef struct lns_bh_keypoint {
    uint32_t pixel; /* y * frame_width + x */
    uint32_t score; /* bits */
} lns_bh_keypoint;

/* A list: the number of its keypoints, then from 64 bytes on the keypoints. */
#define LNS_BH_LIST_HEADER 64
#define LNS_BH_LISTS 4 /* one of each core that looks for them */

/* ---- Moving data ------------------------------------------------------------------------------------ */

/* A tile as the NoC addresses it (ISA: NoC/MemoryMap.md). */
#define LNS_BH_NOC_TILE(x, y) ((uint32_t)(x) | (uint32_t)(y) << 6)

/* `planes` times `rows` times `size` bytes between this tile's L1 and another memory. Addresses and strides at both
 * sides are alike modulo 16, and modulo 64 where the other memory is DRAM or the host's. */
typedef struct lns_bh_copy {
    uint32_t local, remote_low, remote_high, remote_tile;
    uint32_t size, rows, local_row, remote_row, planes, local_plane, remote_plane;
    uint32_t unused;
} lns_bh_copy;

typedef struct lns_bh_copies {
    uint32_t count;
    uint32_t items;  /* lns_bh_copy[count] */
    uint32_t wanted; /* 0: always; else only for requests that want it: LNS_BH_WANT_... */
} lns_bh_copies;

/* The same word, `planes` times `rows` times `words` times. */
typedef struct lns_bh_fill {
    uint32_t address, value, words, rows, row, planes, plane;
} lns_bh_fill;

typedef struct lns_bh_fills {
    uint32_t count;
    uint32_t items; /* lns_bh_fill[count] */
} lns_bh_fills;

/* Counts what other tiles have signalled, and how many of that have been waited for. Each counter belongs to one place
 * in the program: a neighbour may be a step ahead of another. Two lines of 16 bytes, one for each writer. */
typedef struct lns_bh_counter {
    uint32_t count, unused[3];
    uint32_t used, unused2[3];
} lns_bh_counter;

#define LNS_BH_SIGNALS 8
typedef struct lns_bh_signal {
    uint32_t counter; /* its address, the same in all tiles */
    uint32_t count;
    uint32_t tiles[LNS_BH_SIGNALS]; /* LNS_BH_NOC_TILE */
} lns_bh_signal;

typedef struct lns_bh_wait {
    uint32_t counter;
    uint32_t amount;
} lns_bh_wait;

/* Weights for all tiles of a rectangle, by the one tile that has this step: it waits until the place is free in all of
 * them, fetches the data from DRAM to the same place of its own, and multicasts it as it comes. */
typedef struct lns_bh_stream {
    uint32_t dram, dram_tile; /* where the data comes from */
    uint32_t at, size;        /* where it goes, in every tile; multiples of 64 */
    uint32_t rectangle;       /* LNS_BH_NOC_RECTANGLE */
    uint32_t tiles;           /* in it, with this one */
    uint32_t free;            /* counter of this tile: every tile signals it once for each time the place is free */
    uint32_t ready;           /* counter of every tile: is set to how often data has come */
} lns_bh_stream;

/* The corners of a rectangle for a multicast: the last one in the low half. */
#define LNS_BH_NOC_RECTANGLE(first, last) ((first) << 12 | (last))

/* ---- Program -------------------------------------------------------------------------------------- */

enum {
    LNS_BH_END = 0,
    LNS_BH_CONVOLUTION = 1, /* lns_bh_convolution; done when the next step begins */
    LNS_BH_IMAGE = 2,       /* lns_bh_image */
    LNS_BH_SCORES = 3,      /* lns_bh_scores */
    LNS_BH_FETCH = 4,       /* lns_bh_copies into L1: begins them, on NoC 0 */
    LNS_BH_SEND = 5,        /* lns_bh_copies out of L1: begins them, on NoC 1 */
    LNS_BH_LAND = 6,        /* waits for all copies that have begun */
    LNS_BH_FILL = 7,        /* lns_bh_fills */
    LNS_BH_SIGNAL = 8,      /* lns_bh_signal: adds 1 to the counter of each of the tiles */
    LNS_BH_WAIT = 9,        /* lns_bh_wait: until `amount` more have been signalled */
    LNS_BH_KEYPOINTS = 10,  /* lns_bh_suppression */
    LNS_BH_SEND_LISTS = 11, /* lns_bh_suppression: begins to send as much of the lists as there is */
    LNS_BH_BEGIN = 12,      /* lns_bh_convolution: begins it; steps up to the next JOIN run meanwhile */
    LNS_BH_JOIN = 13,       /* waits until it is done */
    LNS_BH_STREAM = 14,     /* lns_bh_stream */
    LNS_BH_ARRIVE = 15      /* waits for all that have begun but those of SEND and SEND_LISTS */
};

typedef struct lns_bh_step {
    uint32_t kind;
    uint32_t at; /* address of what the kind needs */
} lns_bh_step;

#define LNS_BH_READY 0x4C4E5352u /* in `ready` once core B waits for requests */

/* Words of one writer stand in 16 bytes of their own: the caches of the cores hold lines of 16 bytes and are not
 * coherent. */
typedef struct lns_bh_control {
    uint32_t request; /* by the host: number of the request, which rises by 1 */
    uint32_t program; /* by the host: address of the first lns_bh_step */
    uint32_t host[2];
    uint32_t ready;    /* by core B */
    uint32_t finished; /* by core B: number of the last request that is done */
    uint32_t bad_step; /* by core B: 1 + the index of a step of unknown kind, else 0 */
    uint32_t b;
    uint32_t start; /* by core B: rises by 1 when the threads are to begin */
    uint32_t kind;  /* by core B: what they do, and its descriptor */
    uint32_t at;
    uint32_t b2;
    struct {
        uint32_t done; /* by T0, T1, T2: the value of `start` that they have done; 0xFFFFFFFF: not begun yet */
        uint32_t unused[3];
    } thread[3];
} lns_bh_control;

#endif
