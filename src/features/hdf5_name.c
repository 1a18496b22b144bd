/* SPDX-License-Identifier: Apache-2.0 */
/* Run when the build is configured: prints the name of the file that the HDF5 library is loaded from. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <hdf5.h>

int main(void) {
    unsigned major, minor, release;
    if (H5get_libversion(&major, &minor, &release) < 0)
        return 1;
    /* Not found when the library was linked into this program. */
    const void *function = dlsym(RTLD_DEFAULT, "H5get_libversion");
    Dl_info info;
    if (function == NULL || dladdr(function, &info) == 0)
        return 1;
    const char *slash = strrchr(info.dli_fname, '/');
    puts(slash != NULL ? slash + 1 : info.dli_fname);
    return 0;
}
