/* SPDX-License-Identifier: Apache-2.0 */
/* Files of ui/, in the program. */
#ifndef LENSING_SERVER_PAGES_H
#define LENSING_SERVER_PAGES_H

extern const char page_openapi[]; /* ui/openapi.json */
extern const char page_docs[];    /* ui/docs.html */

#endif
