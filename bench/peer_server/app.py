# SPDX-License-Identifier: Apache-2.0
"""The same service in Python: FastAPI, uvicorn and ONNX Runtime, as compare_server.py measures it.

    MODEL=superpoint.onnx uvicorn --app-dir bench/peer_server app:app --port 20001

MODEL is what onnx_model.build() makes. Three threads decode, run the network one at a time, and write answers; 64 more
requests may wait, and beyond that the answer is 503, as `lensing serve` has it by default.
"""
import asyncio
import base64
import binascii
import concurrent.futures
import contextlib
import io
import os
import threading
import time
from typing import Annotated

import fastapi
import fastapi.exceptions
import fastapi.responses
import numpy as np
import onnxruntime
import PIL.Image
import pydantic

import postprocess

THREADS, QUEUE = 3, 64
HEIGHT, WIDTH = postprocess.HEIGHT, postprocess.WIDTH


class Parameters(pydantic.BaseModel):
    max_keypoints: int = pydantic.Field(1024, ge=-1, le=307200)
    keypoint_threshold: float = pydantic.Field(0.005, ge=0, le=1)
    nms_radius: int = pydantic.Field(4, ge=0, le=32)
    return_descriptors: bool = True


class Body(Parameters):
    image: str


class Model:
    """The network; one run at a time on all CPUs."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.lock = threading.Lock()
        self(np.zeros((HEIGHT, WIDTH), np.uint8))

    def __call__(self, frame):
        picture = frame.reshape(1, 1, HEIGHT, WIDTH).astype(np.float32) / np.float32(255)
        with self.lock:
            start = time.perf_counter()
            scores, descriptors = self.session.run(None, {"picture": picture})
        return scores[0], descriptors[0], time.perf_counter() - start


def decode(data):
    """The red plane at the network's size, and the size of the picture."""
    try:
        with PIL.Image.open(io.BytesIO(data)) as picture:
            plane = picture.convert("RGB").getchannel("R")
    except Exception as error:
        raise fastapi.HTTPException(400, f"bad image: {type(error).__name__}: {error}")
    # In two calls, since Pillow 13 sometimes begins with y, which changes some pixels by one.
    rows = plane.resize((WIDTH, plane.height), PIL.Image.Resampling.BILINEAR)
    return np.asarray(rows.resize((WIDTH, HEIGHT), PIL.Image.Resampling.BILINEAR)), plane.size


def decode_base64(text):
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise fastapi.HTTPException(400, f"bad image: {type(error).__name__}: {error}")


def write_descriptors(descriptors):
    file = io.BytesIO()
    np.savez(file, descriptors=descriptors.astype(np.float16))
    return {"format": "npz", "key": "descriptors", "dtype": "float16", "shape": list(descriptors.shape),
            "data": base64.b64encode(file.getvalue()).decode()}


def detect(model, data, parameters):
    """The answer to one request."""
    start = time.perf_counter()
    frame, (width, height) = decode(decode_base64(data) if isinstance(data, str) else data)
    preprocess = time.perf_counter() - start
    scores, descriptors, forward = model(frame)
    start = time.perf_counter()
    points, scores = postprocess.select(postprocess.score_map(scores), parameters.nms_radius,
                                        parameters.keypoint_threshold, parameters.max_keypoints)
    if parameters.return_descriptors:
        descriptors = postprocess.sample(descriptors, points)
    times = [preprocess * 1e3, forward * 1e3, (time.perf_counter() - start) * 1e3]
    scale = width / WIDTH, height / HEIGHT
    answer = {
        "num_keypoints": len(points),
        "keypoints": [[round(x, 3), round(y, 3)] for x, y in (points * scale).tolist()],
        "scores": [round(score, 6) for score in scores.tolist()],
        "original_size": {"height": height, "width": width},
        "image_size": {"height": HEIGHT, "width": WIDTH},
        "scale": {"x": scale[0], "y": scale[1]},
        "params": {"max_keypoints": parameters.max_keypoints, "keypoint_threshold": parameters.keypoint_threshold,
                   "nms_radius": parameters.nms_radius, "border_removal_distance": postprocess.BORDER},
        "serving_path": {"traced": True, "device_nms": 1 <= parameters.nms_radius <= 8},
        "timing_ms": dict(zip(("preprocess", "device_forward", "postprocess", "total"),
                              (round(value, 2) for value in (*times, sum(times))))),
    }
    if parameters.return_descriptors:
        answer["descriptors"] = write_descriptors(descriptors)
    return fastapi.responses.JSONResponse(answer)


class Service:
    def __init__(self, model):
        self.model = model
        self.pool = concurrent.futures.ThreadPoolExecutor(THREADS)
        self.load = 0  # requests that wait or run

    async def answer(self, data, parameters):
        if self.load >= THREADS + QUEUE:
            raise fastapi.HTTPException(503, "the server is busy: the queue is full", {"Retry-After": "1"})
        self.load += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, detect, self.model, data, parameters)
        finally:
            self.load -= 1


@contextlib.asynccontextmanager
async def lifespan(application):
    application.state.service = Service(Model(os.environ["MODEL"]))
    yield


app = fastapi.FastAPI(lifespan=lifespan)


@app.exception_handler(fastapi.exceptions.RequestValidationError)
async def refuse(_, error):
    details = [{key: value for key, value in detail.items() if key != "url"} for detail in error.errors()]
    return fastapi.responses.JSONResponse({"detail": details}, 400)


@app.get("/health")
async def health():
    return {"status": "ok", "model": "superpoint-p150", "device": {"arch": "blackhole", "id": 0, "open": True}}


@app.post("/predict")
async def predict(body: Body):
    return await app.state.service.answer(body.image, body)


@app.post("/predict_raw")
async def predict_raw(request: fastapi.Request, parameters: Annotated[Parameters, fastapi.Query()]):
    return await app.state.service.answer(await request.body(), parameters)
