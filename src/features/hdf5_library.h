/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 library, loaded when it is first needed. */
#ifndef LENSING_FEATURES_HDF5_LIBRARY_H
#define LENSING_FEATURES_HDF5_LIBRARY_H

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <lensing/status.h>

/* The constants of the headers call functions by these, which are not linked. */
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

#define LNS_H5_FUNCTIONS(_)                                                                                            \
    _(Aclose)                                                                                                          \
    _(Acreate2)                                                                                                        \
    _(Awrite)                                                                                                          \
    _(Dclose)                                                                                                          \
    _(Dcreate2)                                                                                                        \
    _(Dwrite)                                                                                                          \
    _(Eget_auto2)                                                                                                      \
    _(Eset_auto2)                                                                                                      \
    _(Ewalk2)                                                                                                          \
    _(Fclose)                                                                                                          \
    _(Fcreate)                                                                                                         \
    _(FDregister)                                                                                                      \
    _(FDunregister)                                                                                                    \
    _(Gclose)                                                                                                          \
    _(Gcreate2)                                                                                                        \
    _(Iget_type)                                                                                                       \
    _(Ldelete)                                                                                                         \
    _(Lexists)                                                                                                         \
    _(Oclose)                                                                                                          \
    _(Oopen)                                                                                                           \
    _(Pclose)                                                                                                          \
    _(Pcreate)                                                                                                         \
    _(Pget_driver_info)                                                                                                \
    _(Pset_char_encoding)                                                                                              \
    _(Pset_create_intermediate_group)                                                                                  \
    _(Pset_driver)                                                                                                     \
    _(Pset_obj_track_times)                                                                                            \
    _(Sclose)                                                                                                          \
    _(Screate)                                                                                                         \
    _(Screate_simple)                                                                                                  \
    _(Tclose)                                                                                                          \
    _(Tcopy)                                                                                                           \
    _(Tset_cset)                                                                                                       \
    _(Tset_size)                                                                                                       \
    _(get_libversion)                                                                                                  \
    _(open)

/* Variables that hold a type or class once the library is open. */
#define LNS_H5_IDS(_)                                                                                                  \
    _(P_CLS_DATASET_CREATE_ID_g)                                                                                       \
    _(P_CLS_FILE_ACCESS_ID_g)                                                                                          \
    _(P_CLS_LINK_CREATE_ID_g)                                                                                          \
    _(T_C_S1_g)                                                                                                        \
    _(T_IEEE_F32LE_g)                                                                                                  \
    _(T_IEEE_F64LE_g)                                                                                                  \
    _(T_NATIVE_DOUBLE_g)                                                                                               \
    _(T_NATIVE_FLOAT_g)                                                                                                \
    _(T_NATIVE_INT64_g)                                                                                                \
    _(T_STD_I64LE_g)

/* H5Dcreate2() is lns_h5.Dcreate2() here, and so on; H5T_NATIVE_FLOAT is *lns_h5.T_NATIVE_FLOAT_g. */
typedef struct lns_h5_functions {
#define DECLARE(name) __typeof__(H5##name) *name;
    LNS_H5_FUNCTIONS(DECLARE)
    LNS_H5_IDS(DECLARE)
#undef DECLARE
} lns_h5_functions;

/* To be used after a successful lns_h5_load() only. */
extern lns_h5_functions lns_h5;

lns_status lns_h5_load(void);

#endif
