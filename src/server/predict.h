/* SPDX-License-Identifier: Apache-2.0 */
/* POST /predict, /predict_raw and /predict_plane. */
#ifndef LENSING_SERVER_PREDICT_H
#define LENSING_SERVER_PREDICT_H

#include "request.h"

/* A JSON body with a base64 image. */
void predict_json(request *r);
/* The bytes of an image file, parameters in the query. */
void predict_raw(request *r);
/* An R plane of height x width bytes. */
void predict_plane(request *r);
/* Refuses a wrong query or length before the body is read. */
void predict_plane_before_body(request *r);

#endif
