/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * All of Lensing: SuperPoint keypoints and descriptors on the CPU.
 *
 * From simple to advanced:
 *   superpoint.h  open a model, detect in a file, in bytes, in pixels
 *   features.h    the result: arrays, files, matching, pictures
 *   image.h       decode and resize by yourself
 *   weights.h     where weights come from, downloads
 *   blackhole.h   Tenstorrent cards: which there are, and a check
 *   status.h      errors
 *   version.h     version, CPU
 */
#ifndef LENSING_LENSING_H
#define LENSING_LENSING_H

#include <lensing/blackhole.h>
#include <lensing/features.h>
#include <lensing/image.h>
#include <lensing/status.h>
#include <lensing/superpoint.h>
#include <lensing/version.h>
#include <lensing/weights.h>

#endif
