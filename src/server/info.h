/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that say what the server is and how it is. */
#ifndef LENSING_SERVER_INFO_H
#define LENSING_SERVER_INFO_H

#include "request.h"

void info_health(request *r);
void info_ready(request *r);
void info_models(request *r);
void info_info(request *r);

#endif
