/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that are loaded when they are first needed. The program starts without them, and without all that
 * they need in turn, which for some is many libraries and milliseconds. */
#ifndef LENSING_BASE_LIBRARY_H
#define LENSING_BASE_LIBRARY_H

#include <stdatomic.h>
#include <stddef.h>

#include <lensing/status.h>

/* A name of the library, and where in the table its address goes. */
typedef struct lns_library_symbol {
    const char *name;
    size_t offset;
    int is_variable;
} lns_library_symbol;

/* The first members are given, as a static variable; the rest begins as zero. */
typedef struct lns_library {
    const char *need;     /* begins the error text: "drawing needs cairo" */
    const char *install;  /* commands that install it, on several systems */
    const char *files[3]; /* names to try; unused ones are NULL */
    const lns_library_symbol *symbols;
    size_t symbol_count;
    void *table;               /* a struct of pointers; valid after success */
    lns_status (*start)(void); /* called when the table is filled, before anyone else uses it; or NULL */
    void *handle;
    atomic_int is_ready;
} lns_library;

/* Loads the library unless it is there already. Any number of threads may call this at the same time. After a failure
 * the next call tries again. A library stays loaded. */
lns_status lns_library_load(lns_library *library);

#endif
