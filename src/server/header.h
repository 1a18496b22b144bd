/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the header of a request is one that every server and proxy reads in the same way. libmicrohttpd is more
 * tolerant, and where two programs on the way disagree about the end of a request, one client can speak for another. */
#ifndef LENSING_SERVER_HEADER_H
#define LENSING_SERVER_HEADER_H

#include "request.h"

/* 0, or the HTTP status to refuse the request with. `method` and `version` are what libmicrohttpd handed over. Sets
 * the length of the body in the request. */
int header_problem(request *r, const char *method, const char *version);

/* Major version of the libmicrohttpd that runs, which may be newer than the one this was built with: 0.9 and 1.0 have
 * the same soname, and read requests differently. */
int header_library_major(void);

#endif
