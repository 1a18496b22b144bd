# SPDX-License-Identifier: Apache-2.0
"""One contender of compare.py in a process of its own: times one piece of work for every line on stdin.

usage: worker.py LIBRARY[:PRECISION] WEIGHTS THREADS forward FRAME
       worker.py LIBRARY WEIGHTS THREADS detect FILE
       worker.py PEER WEIGHTS THREADS forward FRAME

FRAME: 480 x 640 raw bytes. PEER: a name in peers.py. PRECISION: fp32 or bf16. Prints "ready", for `forward` with the mean
of all scores behind it, then for every line milliseconds: for `detect` the whole and the network's part.
"""
import ctypes
import sys
import time

HEIGHT, WIDTH = 480, 640


class Options(ctypes.Structure):
    """lns_superpoint_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("weights", ctypes.c_char_p), ("backend", ctypes.c_char_p),
                ("threads", ctypes.c_int), ("precision", ctypes.c_int), ("device_id", ctypes.c_int)]


class Features(ctypes.Structure):
    """The start of lns_features, down to the timing."""

    _fields_ = [("count", ctypes.c_size_t), ("keypoints", ctypes.c_void_p), ("network_keypoints", ctypes.c_void_p),
                ("scores", ctypes.c_void_p), ("descriptors", ctypes.c_void_p), ("image_width", ctypes.c_uint32),
                ("image_height", ctypes.c_uint32), ("scale_x", ctypes.c_double), ("scale_y", ctypes.c_double),
                ("max_keypoints", ctypes.c_int32), ("keypoint_threshold", ctypes.c_double),
                ("nms_radius", ctypes.c_int32), ("border_removal_distance", ctypes.c_int32),
                ("preprocess", ctypes.c_double), ("forward", ctypes.c_double), ("postprocess", ctypes.c_double)]


def lensing(library, weights, threads, precision="fp32"):
    """The loaded library and an open model."""
    api = ctypes.CDLL(library)
    api.lns_error_message.restype = ctypes.c_char_p
    options = Options()
    api.lns_superpoint_options_init(ctypes.byref(options))
    options.weights, options.threads = weights.encode(), threads
    options.precision = {"fp32": 0, "bf16": 1}[precision]
    model = ctypes.c_void_p()
    if api.lns_superpoint_open(ctypes.byref(options), ctypes.byref(model)) != 0:
        raise SystemExit(api.lns_error_message().decode())
    return api, model


def lensing_forward(library, weights, threads, frame):
    library, _, precision = library.partition(":")
    api, model = lensing(library, weights, threads, precision or "fp32")
    scores = (ctypes.c_float * (HEIGHT * WIDTH))()
    descriptors = (ctypes.c_float * (HEIGHT // 8 * WIDTH // 8 * 256))()

    def run():
        start = time.perf_counter()
        api.lns_superpoint_forward(model, frame, scores, descriptors)
        return [(time.perf_counter() - start) * 1e3]

    run()
    return run, sum(scores) / len(scores)


def lensing_detect(library, weights, threads, data):
    api, model = lensing(library, weights, threads)

    def run():
        result = ctypes.POINTER(Features)()
        start = time.perf_counter()
        status = api.lns_superpoint_detect_encoded(model, data, ctypes.c_size_t(len(data)), None, ctypes.byref(result))
        took = (time.perf_counter() - start) * 1e3
        if status != 0:
            raise SystemExit(api.lns_error_message().decode())
        forward = result.contents.forward
        api.lns_features_close(ctypes.byref(result))
        return [took, forward]

    return run


def peer_forward(name, weights, threads, frame):
    import numpy as np

    import peers

    make, precision, _ = peers.PEERS[name]
    network = make(weights, threads, precision)
    picture = np.frombuffer(frame, np.uint8).reshape(1, 1, HEIGHT, WIDTH).astype(np.float32) / np.float32(255)

    def run():
        start = time.perf_counter()
        network(picture)
        return [(time.perf_counter() - start) * 1e3]

    return run, np.mean(network(picture)[0][0, :64], dtype=np.float64)


def main():
    contender, weights, threads, work, path = sys.argv[1:6]
    with open(path, "rb") as file:
        data = file.read()
    facts = ()
    if work == "detect":
        run = lensing_detect(contender, weights, int(threads), data)
    else:
        forward = lensing_forward if contender.partition(":")[0].endswith(".so") else peer_forward
        run, mean_score = forward(contender, weights, int(threads), data)
        facts = (f"{mean_score:.8f}",)
    run()
    print("ready", *facts, flush=True)
    for _ in sys.stdin:
        print(*(f"{value:.4f}" for value in run()), flush=True)


if __name__ == "__main__":
    main()
