/* SPDX-License-Identifier: Apache-2.0 */
/* Input and output for the HDF5 library, in place of its own. A library that cannot write what it holds neither closes
 * its file nor ends in silence (it complains on stderr when the process ends). So here a failed write is only noted,
 * with the system's reason, and later ones are dropped: for the library everything succeeds, and the caller looks at
 * the note. */
#ifndef LENSING_FEATURES_HDF5_DRIVER_H
#define LENSING_FEATURES_HDF5_DRIVER_H

#include "features/hdf5_library.h"

typedef struct lns_hdf5_driver {
    H5FD_t library; /* first: the library knows the file by its address */
    int descriptor;
    int error; /* errno of the first failed write; 0: none */
    haddr_t used;
    haddr_t size;
} lns_hdf5_driver;

/* A new HDF5 file in the empty file `driver->descriptor`. Both must outlive it. Negative on error. The
 * library must be loaded. */
hid_t lns_hdf5_driver_create(lns_hdf5_driver *driver, const char *name);

#endif
