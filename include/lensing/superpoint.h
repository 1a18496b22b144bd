/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * SuperPoint: keypoints and descriptors of a picture.
 *
 * A model is opened once and can then be used by any number of threads at the same time. The result for a picture does
 * not depend on the number of threads, on other calls, or on whether the picture came as a file, as bytes, as pixels or
 * as a plane. A model that was open when the process forked works in the child too, on one thread for each call.
 */
#ifndef LENSING_SUPERPOINT_H
#define LENSING_SUPERPOINT_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/features.h>
#include <lensing/image.h>
#include <lensing/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open model. Opaque; immutable after lns_superpoint_open(). */
typedef struct lns_superpoint lns_superpoint;

/** Arithmetic of the network. */
typedef enum lns_precision {
    LNS_PRECISION_FP32 = 0, /**< float32 throughout */
    LNS_PRECISION_BF16 = 1  /**< products of bfloat16, sums in float32: about twice as fast, and a little less exact;
                                 needs a CPU with AVX512_BF16, see docs/compatibility.md */
} lns_precision;

/** How to open a model. Call lns_superpoint_options_init() first. */
typedef struct lns_superpoint_options {
    size_t struct_size;
    const char *weights; /**< a folder with config.json and model.safetensors, a .safetensors file, or a Hugging Face
                              repository id with optional "@revision", looked up in the local cache. NULL: what the
                              environment names, else the weights inside the library; see lns_weights_locate() */
    const char *backend; /**< "cpu", or "blackhole", a Tenstorrent card, see lensing/blackhole.h; NULL = "cpu" */
    int threads;         /**< threads of the model's pool, with the caller; 0 = as many as the CPU has, with a card at
                              most 4; at most 256 */
    lns_precision precision; /**< of the CPU; without AVX512_BF16 ::LNS_PRECISION_BF16 is ::LNS_ERROR_UNSUPPORTED. A
                                card has products of bfloat16 and sums in float32, whatever this says */
    int device_id; /**< which card, N of /dev/tenstorrent/N; -1: what TT_DEVICE_ID says, or 0. The CPU has none */
} lns_superpoint_options;

/** Defaults: all NULL, 0, ::LNS_PRECISION_FP32, device_id -1. */
LNS_API void lns_superpoint_options_init(lns_superpoint_options *options);

/** Opens a model. Reads only local files; downloads are a matter of lns_weights_fetch(). A card that is missing, is no
 * Blackhole, has too few columns, or has a driver or firmware that is too old: ::LNS_ERROR_UNSUPPORTED; one that is in
 * use or does not answer: ::LNS_ERROR_SYSTEM. With LENSING_TTSIM in the environment, the simulator that it names takes
 * the place of any card.
 * @param options NULL for the defaults. @param model receives the model; NULL on error. */
LNS_API lns_status lns_superpoint_open(const lns_superpoint_options *options, lns_superpoint **model);

/** Fetches the memory of one detection from the system, which otherwise the first one does. It changes no result, and
 * takes some milliseconds. */
LNS_API lns_status lns_superpoint_prepare(lns_superpoint *model);

/** Closes a model, and sets the pointer to NULL. No call on it may be running. NULL is ignored. */
LNS_API void lns_superpoint_close(lns_superpoint **model);

/** What to look for. Call lns_detect_options_init() first. */
typedef struct lns_detect_options {
    size_t struct_size;
    int32_t max_keypoints;      /**< -1..307200: keep at most so many, the highest scores; -1 = all, 0 = none */
    double keypoint_threshold;  /**< 0..1: keep scores above this (strictly, compared in float32) */
    int32_t nms_radius;         /**< 0..32 pixels of the network frame: keep a pixel if it is the maximum of the square
                                     of 2 r + 1 pixels around it; tied pixels are all kept; 0 = off */
    int32_t return_descriptors; /**< not 0: sample a descriptor for every keypoint */
    const lns_image_options *image; /**< how to decode files and encoded bytes; NULL for the defaults */
} lns_detect_options;

/** Defaults: max_keypoints 1024, keypoint_threshold 0.005, nms_radius 4, return_descriptors 1, image NULL. */
LNS_API void lns_detect_options_init(lns_detect_options *options);

/** Largest accepted max_keypoints: one keypoint for every pixel of the network frame. */
#define LNS_MAX_KEYPOINTS_LIMIT (LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT)
/** Largest accepted nms_radius. */
#define LNS_NMS_RADIUS_LIMIT 32

/** Detects in an image file. @param options NULL for the defaults. @param features receives the result, to be freed with
 * lns_features_close(); NULL on error. */
LNS_API lns_status lns_superpoint_detect_file(lns_superpoint *model, const char *path,
                                              const lns_detect_options *options, lns_features **features);

/** Detects in the bytes of an image file. */
LNS_API lns_status lns_superpoint_detect_encoded(lns_superpoint *model, const void *bytes, size_t size,
                                                 const lns_detect_options *options, lns_features **features);

/** Detects in pixels. @see lns_plane_from_pixels for stride and format. */
LNS_API lns_status lns_superpoint_detect_pixels(lns_superpoint *model, const void *pixels, uint32_t width,
                                                uint32_t height, ptrdiff_t stride, lns_pixel_format format,
                                                const lns_detect_options *options, lns_features **features);

/** Detects in an R plane of any size, such as lns_plane_read() gives. */
LNS_API lns_status lns_superpoint_detect_plane(lns_superpoint *model, const lns_plane *plane,
                                               const lns_detect_options *options, lns_features **features);

/** Runs the network alone. @param frame 480 x 640 bytes, row-major. @param scores receives 480 x 640 float32 scores
 * before suppression. @param descriptors receives 60 x 80 x 256 float32, one descriptor of length 1 for each cell of
 * 8 x 8 pixels, row-major; NULL leaves the descriptor head out. */
LNS_API lns_status lns_superpoint_forward(lns_superpoint *model, const uint8_t *frame, float *scores,
                                          float *descriptors);

/** What one step of the network takes: a layer, or layers that are computed together. */
typedef struct lns_step_time {
    const char *name; /**< such as "conv2a"; never freed */
    double ms;        /**< wall-clock time */
    double gflop;     /**< 10^9 additions and multiplications of the products that the step needs: of Winograd's, where
                           that is used, and without its transforms */
} lns_step_time;

/** Most steps that lns_superpoint_profile() tells of. */
#define LNS_STEPS_LIMIT 12

/** Runs the network with descriptors and measures its steps. @param frame 480 x 640 bytes, row-major. @param steps
 * receives up to ::LNS_STEPS_LIMIT steps in their order. @param count receives how many. */
LNS_API lns_status lns_superpoint_profile(lns_superpoint *model, const uint8_t *frame, lns_step_time *steps,
                                          size_t *count);

/** Measures how fast the model's threads multiply and add in registers alone, with the instructions of its precision
 * and kernel set, in about a tenth of a second. @param gflops receives 10^9 operations a second: what no step can
 * exceed. */
LNS_API lns_status lns_superpoint_peak(lns_superpoint *model, double *gflops);

/** Facts about an open model. The strings are owned by the model. */
typedef struct lns_superpoint_info {
    const char *backend;    /**< "cpu" or "blackhole" */
    const char *cpu_path;   /**< kernel set: "c", "avx2", "avx512"; with bf16 "avx512_bf16"; "" on a card */
    const char *precision;  /**< "fp32" or "bf16"; of a card "bf16" */
    int threads;            /**< threads used for one call; on a card those of the host */
    const char *file;       /**< path of the safetensors file; NULL: the weights inside the library */
    const char *repository; /**< name of the weights: the repository id or path that was asked for, or
                                 lns_weights_builtin() */
    const char *revision;   /**< NULL when not asked for */
    const char *local_dir;  /**< folder that was given, or NULL */
    const char *license;    /**< licence of the weights as far as known; one line */
    int32_t border_removal_distance;
    const char *device; /**< what runs the network: "cpu", the card's "/dev/tenstorrent/N", or "simulator" */
    int has_failed;     /**< not 0: the card failed in a call, and every further one fails; open the model again */
} lns_superpoint_info;

/** Fills @p info. @param struct_size sizeof(lns_superpoint_info) as the caller knows it. */
LNS_API lns_status lns_superpoint_describe(const lns_superpoint *model, lns_superpoint_info *info,
                                           size_t struct_size);

#ifdef __cplusplus
}
#endif
#endif
