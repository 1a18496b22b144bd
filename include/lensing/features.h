/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Keypoints with descriptors: the result of a detection, matching, files and pictures of them.
 */
#ifndef LENSING_FEATURES_H
#define LENSING_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/image.h>
#include <lensing/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Numbers in one descriptor. */
#define LNS_DESCRIPTOR_SIZE 256

/** Size of the frame that the network sees; every picture is resized to it, aspect not kept. */
#define LNS_NETWORK_WIDTH 640
#define LNS_NETWORK_HEIGHT 480

/** Wall-clock time of the steps of one detection, milliseconds. */
typedef struct lns_timing {
    double preprocess;  /**< decode and resize */
    double forward;     /**< the network */
    double postprocess; /**< suppression, selection, descriptor sampling */
} lns_timing;

/** Result of one detection. Made by the library, read-only for the caller, freed with
 * lns_features_close(). All arrays have the same order: descending score, and among equal scores
 * row-major order of the network frame (upper first, then left first). */
typedef struct lns_features {
    size_t count;                   /**< number of keypoints N, >= 0 */
    const float *keypoints;         /**< N x 2: x, y in pixels of the original picture; (0, 0) is the centre of
                                         the top left pixel of the network frame, scaled: x = network x * scale_x */
    const float *network_keypoints; /**< N x 2: x, y in the 640 x 480 frame; whole numbers */
    const float *scores;            /**< N, in (0, 1], not increasing */
    const float *descriptors;       /**< N x 256, each of Euclidean length 1; NULL when not asked for */
    uint32_t image_width;           /**< size of the original picture, pixels */
    uint32_t image_height;
    double scale_x; /**< image_width / 640 */
    double scale_y; /**< image_height / 480 */
    /* The parameters that were used. */
    int32_t max_keypoints;
    double keypoint_threshold;
    int32_t nms_radius;
    int32_t border_removal_distance; /**< from the weights' config.json; pixels of the network frame */
    lns_timing timing_ms;
    int32_t device_nms;  /**< not 0: suppression ran on a device, such as a card, and not on the CPU */
    const char *weights; /**< name of the weights, as lns_superpoint_info has it in `repository`; NULL: not known */
    const char *license; /**< their licence, as far as it is known; NULL: nothing is */
} lns_features;

/** Copies a result with all its arrays. */
LNS_API lns_status lns_features_copy(const lns_features *features, lns_features **copy);

/** Frees a result and sets the pointer to NULL. NULL is ignored. */
LNS_API void lns_features_close(lns_features **features);

/* ---- Files -------------------------------------------------------------------------------------- */

/** How to write JSON. Call lns_json_options_init() first. */
typedef struct lns_json_options {
    size_t struct_size;
    const char *file; /**< value of the key "file"; NULL leaves the key out. UTF-8; invalid bytes are replaced */
    int descriptors;  /**< not 0: add "descriptors", a base64 NPZ of float16 (N, 256) */
    int serving_path; /**< not 0: add "serving_path", as answers of the server have it: whether the network ran as one
                           traced program of a device and suppression on it; on the CPU both are false */
    int weights;      /**< not 0: add "weights" with the "name" and "license" of the weights, null when not known */
} lns_json_options;

/** Defaults: file NULL, descriptors 0, serving_path 0, weights 0. */
LNS_API void lns_json_options_init(lns_json_options *options);

/** One JSON object on one line, without a final newline, in the shape of the server's answer: num_keypoints,
 * keypoints (3 decimals), scores (6 decimals), original_size, image_size, scale, params, timing_ms and perhaps weights
 * and descriptors; "file" comes first when given. @param text receives a NUL-terminated buffer; free it with
 * lns_buffer_free(). @param size receives its length without the NUL; may be NULL. */
LNS_API lns_status lns_features_to_json(const lns_features *features, const lns_json_options *options, char **text,
                                        size_t *size);

/** NPZ file (readable by `numpy.load`) with keypoints float32 (N, 2), scores float32 (N), descriptors
 * float32 (N, 256) when present, image_size int64 (2): width, height, and where they are known, the name of the weights
 * and their licence as bytes (UTF-8), weights and weights_license. @param bytes receives a buffer; free it with
 * lns_buffer_free(). */
LNS_API lns_status lns_features_to_npz(const lns_features *features, void **bytes, size_t *size);

/** HDF5 file of many results, in the layout that hloc reads: for each name a group with keypoints float32 (N, 2),
 * scores float32 (N), descriptors float32 (256, N) and image_size int64 (2): width, height; and the group's attributes
 * weights and weights_license, texts, where they are known. A name with slashes makes nested groups. Written to a temporary name beside `path`, renamed by lns_hdf5_close(). Not thread-safe: one writer,
 * one thread. */
typedef struct lns_hdf5 lns_hdf5;
LNS_API lns_status lns_hdf5_create(const char *path, lns_hdf5 **file);
LNS_API lns_status lns_hdf5_add(lns_hdf5 *file, const char *name, const lns_features *features);
/** Finishes the file under its final name, and sets the pointer to NULL, also on error. */
LNS_API lns_status lns_hdf5_close(lns_hdf5 **file);
/** Drops an unfinished file and sets the pointer to NULL. NULL is ignored. */
LNS_API void lns_hdf5_abandon(lns_hdf5 **file);

/** Writes a whole file: to a temporary name in the same folder, then renamed, so that a reader never sees a part and
 * an error leaves what was there before. */
LNS_API lns_status lns_file_save(const char *path, const void *bytes, size_t size);

/* ---- Matching ----------------------------------------------------------------------------------- */

/** How to match. Call lns_match_options_init() first. */
typedef struct lns_match_options {
    size_t struct_size;
    float ratio; /**< in (0, 1]: keep a match when its distance is below ratio x the distance of the second best, from
                      the first to the second picture; 1 = no test. A single candidate has no second best and passes */
    float min_similarity; /**< in [-1, 1]: keep a match when the dot product of the descriptors is at least this */
    int threads;          /**< 0 = as many as the CPU has */
} lns_match_options;

/** Defaults: ratio 1, min_similarity -1, threads 0. */
LNS_API void lns_match_options_init(lns_match_options *options);

/** One match. */
typedef struct lns_match {
    uint32_t first;   /**< index of a keypoint of the first picture */
    uint32_t second;  /**< index of a keypoint of the second picture */
    float similarity; /**< dot product of the two descriptors, in [-1, 1] */
} lns_match;

/** Result of matching, ordered by `first`. */
typedef struct lns_matches {
    size_t count;
    const lns_match *items;
} lns_matches;

/** Mutual nearest neighbours by the dot product of the descriptors (for vectors of length 1 the same order as the
 * Euclidean distance, which is sqrt(2 - 2 x similarity)). Among equally near neighbours the lowest index wins. Both
 * results must have descriptors. The result does not depend on the number of threads. */
LNS_API lns_status lns_match_features(const lns_features *first, const lns_features *second,
                                      const lns_match_options *options, lns_matches **matches);

/** Frees matches and sets the pointer to NULL. NULL is ignored. */
LNS_API void lns_matches_close(lns_matches **matches);

/* ---- Pictures ----------------------------------------------------------------------------------- */

/** PNG of the plane in gray with a circle for every keypoint, larger and warmer for a higher score. A plane whose
 * longer side is above 2560 pixels is drawn smaller, with that side at 2560. @param png receives a buffer; free it with
 * lns_buffer_free(). */
LNS_API lns_status lns_draw_keypoints(const lns_plane *plane, const lns_features *features, void **png, size_t *size);

/** PNG of both planes side by side with a line for every match, warmer for a higher similarity. The smaller plane is
 * enlarged to the height of the other, at most 4 times; the whole is at most 4096 pixels wide and high. */
LNS_API lns_status lns_draw_matches(const lns_plane *first_plane, const lns_features *first,
                                    const lns_plane *second_plane, const lns_features *second,
                                    const lns_matches *matches, void **png, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
