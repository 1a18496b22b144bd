/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * Status codes and error text.
 *
 * Every function that can fail returns an ::lns_status. When it is not ::LNS_OK, lns_error_message()
 * gives, for the calling thread, one line that says what was wrong, with which value, and what would
 * be right.
 */
#ifndef LENSING_STATUS_H
#define LENSING_STATUS_H

#if defined(_WIN32) && defined(LENSING_BUILD_SHARED)
#define LNS_API __declspec(dllexport)
#elif defined(__GNUC__)
#define LNS_API __attribute__((visibility("default")))
#else
#define LNS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a call. The numbers are stable. */
typedef enum lns_status {
    LNS_OK = 0,
    LNS_ERROR_INVALID_ARGUMENT = 1, /**< a parameter is out of range or a pointer is missing */
    LNS_ERROR_OUT_OF_MEMORY = 2,    /**< an allocation failed; nothing was leaked */
    LNS_ERROR_IO = 3,               /**< a file could not be opened, read or written */
    LNS_ERROR_FORMAT = 4,           /**< the data is of no format that this build reads */
    LNS_ERROR_CORRUPT = 5,          /**< the data is of a known format but truncated or damaged */
    LNS_ERROR_LIMIT = 6,            /**< the data is larger than a limit, such as max_pixels */
    LNS_ERROR_WEIGHTS = 7,          /**< weights not found, or with wrong tensors */
    LNS_ERROR_NETWORK = 8,          /**< a download failed */
    LNS_ERROR_UNSUPPORTED = 9,      /**< this build or this machine lacks what was asked for */
    LNS_ERROR_SYSTEM = 10           /**< the operating system refused something, such as a thread */
} lns_status;

/** Short stable name of a status, such as "invalid-argument"; never NULL. */
LNS_API const char *lns_status_name(lns_status status);

/** Text of the last error on the calling thread; "" when there was none. One line, UTF-8, without a
 * final newline. Owned by the library; valid until the next failing call on this thread. */
LNS_API const char *lns_error_message(void);

/** Frees a buffer that a function of this library returned for the caller to free. NULL is ignored. */
LNS_API void lns_buffer_free(void *buffer);

#ifdef __cplusplus
}
#endif
#endif
