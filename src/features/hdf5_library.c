/* SPDX-License-Identifier: Apache-2.0 */
#include "lensing_config.h"

#if LNS_HAVE_HDF5

#include "base/error.h"
#include "base/library.h"
#include "features/hdf5_library.h"

lns_h5_functions lns_h5;

static const lns_library_symbol symbols[] = {
#define FUNCTION(name) {"H5" #name, offsetof(lns_h5_functions, name), 0},
#define VARIABLE(name) {"H5" #name, offsetof(lns_h5_functions, name), 1},
    LNS_H5_FUNCTIONS(FUNCTION) LNS_H5_IDS(VARIABLE)
#undef FUNCTION
#undef VARIABLE
};

/* Structs of the library change between minor versions, not within one. */
static lns_status check_version(void) {
    unsigned major = 0, minor = 0, release = 0;
    if (lns_h5.get_libversion(&major, &minor, &release) >= 0 && major == H5_VERS_MAJOR && minor == H5_VERS_MINOR)
        return LNS_OK;
    return lns_fail(LNS_ERROR_UNSUPPORTED,
                    "HDF5 files need HDF5 %d.%d, with which this program was built: %s is version %u.%u.%u",
                    H5_VERS_MAJOR, H5_VERS_MINOR, LNS_HDF5_LIBRARY, major, minor, release);
}

static lns_library library = {
    .need = "HDF5 files need the HDF5 library",
    .install = "'apt install libhdf5-dev', 'dnf install hdf5' or 'brew install hdf5'",
    .files = {LNS_HDF5_LIBRARY},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &lns_h5,
    .start = check_version,
};

lns_status lns_h5_load(void) {
    return lns_library_load(&library);
}

#endif
