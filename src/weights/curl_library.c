/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/curl_library.h"

#include "base/error.h"
#include "base/library.h"

static lns_curl functions;

static const lns_library_symbol symbols[] = {
#define SYMBOL(name) {"curl_" #name, offsetof(lns_curl, name), 0},
    LNS_CURL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static lns_status start(void) {
    const CURLcode code = functions.global_init(CURL_GLOBAL_DEFAULT);
    if (code == CURLE_OK)
        return LNS_OK;
    return lns_fail(LNS_ERROR_SYSTEM, "libcurl does not start: %s", functions.easy_strerror(code));
}

static lns_library library = {
    .need = "downloads need libcurl 7.62 or newer",
    .install = "'apt install libcurl4', 'dnf install libcurl' or 'brew install curl'",
#if defined(__APPLE__)
    .files = {"libcurl.4.dylib"},
#else
    .files = {"libcurl.so.4", "libcurl-gnutls.so.4"}, /* Debian has one for each TLS library */
#endif
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &functions,
    .start = start,
};

lns_status lns_curl_load(const lns_curl **curl) {
    *curl = &functions;
    return lns_library_load(&library);
}
