/* SPDX-License-Identifier: Apache-2.0 */
/* Files of ui/, in the program; each ends with a NUL. */
#ifndef LENSING_SERVER_PAGES_H
#define LENSING_SERVER_PAGES_H

extern const char page_docs[];    /* ui/docs.html */
extern const char page_index[];   /* ui/index.html */
extern const char page_openapi[]; /* ui/openapi.json */
extern const char page_script[];  /* the scripts of ui/, page.js last */
extern const char page_style[];   /* ui/style.css */

#endif
