/* SPDX-License-Identifier: Apache-2.0 */
#include "lensing_config.h"

#if LNS_HAVE_CAIRO

#include "base/library.h"
#include "features/cairo_library.h"

lns_cairo_functions lns_cairo;

static const lns_library_symbol symbols[] = {
#define SYMBOL(name) {"cairo_" #name, offsetof(lns_cairo_functions, name), 0},
    LNS_CAIRO_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static lns_library library = {
    .need = "drawing needs cairo",
    .install = "'apt install libcairo2', 'dnf install cairo' or 'brew install cairo'",
#if defined(__APPLE__)
    .files = {"libcairo.2.dylib"},
#else
    .files = {"libcairo.so.2"},
#endif
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &lns_cairo,
};

lns_status lns_cairo_load(void) {
    return lns_library_load(&library);
}

#endif
