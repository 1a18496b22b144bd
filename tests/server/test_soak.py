# SPDX-License-Identifier: Apache-2.0
"""Many requests, good and bad: memory, descriptors and threads stay as they are.

LENSING_SOAK is the number of requests, 600 if it is not set. Most are answered without the network."""
import os

import numpy as np
import pytest

from running import encoded, json_body, message, picture

COUNT = int(os.environ.get("LENSING_SOAK", 600))


def make_requests(count):
    random = np.random.default_rng(9)
    requests = []
    for i in range(count):
        image = encoded(picture(i, int(random.integers(1, 300)), int(random.integers(1, 300))), ("PNG", "JPEG")[i % 2])
        kind = i % 16
        if kind == 0:
            requests.append((200, message("POST", f"/predict_raw?max_keypoints={random.integers(0, 2000)}", image)))
        elif kind == 8:
            requests.append((200, message("POST", "/predict", json_body(image), Content_Type="application/json")))
        elif kind % 4 == 1:
            requests.append((400, message("POST", "/predict_raw", image[: len(image) // 2])))
        elif kind % 4 == 2:
            requests.append((400, message("POST", "/predict", json_body(image)[:-1], Content_Type="application/json")))
        elif kind % 4 == 3:
            requests.append((400, message("POST", f"/predict_plane?height=9&width={random.integers(1, 99)}", b"abc")))
        else:
            requests.append((200, message("GET", ("/info", "/health")[i % 2])))
    return requests


def test_soak(start, sanitized):
    server = start()
    requests = make_requests(min(COUNT // 10, 320))
    connection, before, highest = server.connect(), None, 0
    for i in range(COUNT):
        status, data = requests[i % len(requests)]
        connection.send(data)
        answer = connection.answer()
        assert answer is not None and answer.status == status, (i, answer)
        if answer.headers.get("connection", "").lower() == "close" or i % 50 == 49:
            connection.close()
            connection = server.connect()
        if i == COUNT // 2:
            before = server.rss(), server.descriptors(), server.threads()
        elif i > COUNT // 2 and i % 20 == 0:
            highest = max(highest, server.rss())
    after = server.rss(), server.descriptors(), server.threads()
    connection.close()
    print(f"{COUNT} requests: memory {before[0]} kB at half, {after[0]} kB at the end, {highest} kB at most")
    assert after[2] == before[2] and abs(after[1] - before[1]) <= 2
    if sanitized:
        pytest.skip("a sanitizer keeps freed memory")
    # In a short run it is chance which of the three workers, each with a heap of its own, has met the largest pictures.
    slack = 256 if COUNT >= 20000 else 24576
    assert after[0] < before[0] * 1.02 + slack
