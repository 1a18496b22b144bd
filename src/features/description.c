/* SPDX-License-Identifier: Apache-2.0 */
/* Which libraries this build has. Here, and not in base/, because of the headers of all those libraries. */
#include <lensing/version.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "lensing_config.h"

#if LNS_HAVE_JPEG
#include <jpeglib.h>
#endif
#if LNS_HAVE_WEBP
#include <webp/decode.h>
#endif
#if LNS_HAVE_TIFF
#include <tiffio.h>
#endif
#if LNS_HAVE_CURL
#include <curl/curlver.h>
#endif
#if LNS_HAVE_HDF5
#include <hdf5.h>
#endif
#if LNS_HAVE_CAIRO
#include <cairo.h>
#endif

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static char description[512];

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...) {
    const size_t length = strlen(description);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(description + length, sizeof description - length, format, arguments);
    va_end(arguments);
}

static void add_jpeg(void) {
#if !LNS_HAVE_JPEG
    add("no jpeg");
#elif defined(LIBJPEG_TURBO_VERSION)
    add("jpeg %s", TEXT(LIBJPEG_TURBO_VERSION));
#else
    add("jpeg %d", JPEG_LIB_VERSION);
#endif
}

static void add_webp(void) {
#if LNS_HAVE_WEBP
    const int version = WebPGetDecoderVersion();
    add(", webp %d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
#else
    add(", no webp");
#endif
}

static void add_tiff(void) {
#if LNS_HAVE_TIFF
    /* "LIBTIFF, Version 4.5.0", then lines about copyright. */
    const char *version = strstr(TIFFGetVersion(), "Version ");
    if (version != NULL)
        version += strlen("Version ");
    add(", tiff %.*s", version != NULL ? (int)strcspn(version, "\n") : 0, version != NULL ? version : "");
#else
    add(", no tiff");
#endif
}

static void add_curl(void) {
#if LNS_HAVE_CURL
    add(", curl %s", LIBCURL_VERSION); /* of its headers: the library is loaded when it is needed */
#else
    add(", no curl");
#endif
}

static void add_hdf5(void) {
#if LNS_HAVE_HDF5
    add(", hdf5 %d.%d.%d", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
#else
    add(", no hdf5");
#endif
}

static void add_cairo(void) {
#if LNS_HAVE_CAIRO
    add(", cairo %s", CAIRO_VERSION_STRING); /* of its headers, as for curl and hdf5 */
#else
    add(", no cairo");
#endif
}

static void describe(void) {
    add_jpeg();
    add(", png, gif"); /* own readers */
    add_webp();
    add_tiff();
    add_curl();
    add_hdf5();
    add_cairo();
    add(", zlib %s", zlibVersion());
}

const char *lns_build_description(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, describe);
    return description;
}
