# SPDX-License-Identifier: Apache-2.0
"""The queue in front of the network, and the answers that come out of it."""
import base64
import io
import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from running import LONG, clean_environment, encoded, json_body, message, picture, without_timing

PICTURE = encoded(picture())
HELD = 3  # requests that the threads of the engine hold


def post(server, target="/predict_raw?return_descriptors=false", body=PICTURE):
    began = time.monotonic()
    answer = server.post(target, body)
    return answer, time.monotonic() - began


def forwards(server):
    return server.metric("lensing_stage_seconds_count", stage="forward")


def occupy(server, count):
    """Sends requests that keep the engine busy. Returns their connections."""
    connections = []
    for _ in range(count):
        connections.append(server.connect())
        connections[-1].send(message("POST", "/predict_raw?return_descriptors=false", PICTURE))
    return connections


def test_full_queue(start):
    """More than the queue holds is refused at once; what was accepted is answered."""
    server = start("--queue", "2", "--threads", "1")
    with ThreadPoolExecutor(24) as pool:
        results = list(pool.map(lambda _: post(server), range(24)))
    refused = [(answer, seconds) for answer, seconds in results if answer.status == 503]
    accepted = [answer for answer, _ in results if answer.status == 200]
    assert len(refused) + len(accepted) == 24
    # All may come before a worker has taken the first.
    assert len(accepted) >= 2 and len(refused) >= 6, (len(accepted), len(refused))
    for answer, _ in refused:
        assert answer.headers["retry-after"] == "1" and "queue is full" in answer.json["detail"]
    assert len({without_timing(answer.body) for answer in accepted}) == 1
    assert server.metric("lensing_refused_total") == len(refused)
    assert forwards(server) == len(accepted)


def test_refusal_is_quick(start):
    server = start("--queue", "1", "--threads", "1")
    times = []
    for _ in range(20):
        connections = occupy(server, 4)
        answer, seconds = post(server)
        if answer.status == 503:
            times.append(seconds)
        for connection in connections:
            connection.close()
    assert times and min(times) < 0.05, times


def test_others_are_answered_while_the_network_works(start):
    server = start("--threads", "1")
    connections = occupy(server, 20)
    for _ in range(10):
        assert server.get("/health").status == 200
    assert forwards(server) < 20
    for connection in connections:
        assert connection.answer().status == 200
        connection.close()


def test_queue_timeout(start):
    """Who waited too long is told so, and the network does not run for it."""
    server = start("--queue-timeout", "0.02", "--threads", "1")
    with ThreadPoolExecutor(8) as pool:
        answers = [answer for answer, _ in pool.map(lambda _: post(server), range(8))]
    late = [answer for answer in answers if answer.status == 503]
    assert late and {answer.status for answer in answers} <= {200, 503}
    for answer in late:
        assert answer.headers["retry-after"] == "1" and "waited too long" in answer.json["detail"]
    assert server.metric("lensing_late_total") == len(late)
    assert forwards(server) == len(answers) - len(late)


def test_abandoned_requests_are_skipped(start):
    server = start("--threads", "1")
    stay = occupy(server, HELD)
    time.sleep(0.02)
    leave = occupy(server, 8)
    for connection in leave:
        connection.close()
    for connection in stay:
        assert connection.answer().status == 200
        connection.close()
    end = time.monotonic() + 60
    while server.metric("lensing_abandoned_total") + forwards(server) < HELD + 8 and time.monotonic() < end:
        time.sleep(0.05)
    assert server.metric("lensing_abandoned_total") >= 6
    assert forwards(server) + server.metric("lensing_abandoned_total") == HELD + 8


def test_body_memory(start):
    """All bodies together are bounded; what is announced but not sent does not count."""
    server = start("--max-body-memory", "4", "--max-body", "3", "--body-timeout", "60", "--idle-timeout", "60")
    announced = []
    for _ in range(5):
        announced.append(server.connect())
        announced[-1].send(message("POST", "/predict_raw", Content_Length=3 << 20) + b"a")
    assert post(server)[0].status == 200
    for connection in announced:
        connection.send(b"\0" * ((3 << 20) - 20_000))
    time.sleep(0.5)
    for connection in announced:
        connection.send(b"\0" * (20_000 - 1))
    statuses = [connection.answer().status for connection in announced]
    assert set(statuses) == {400, 503}, statuses
    for connection in announced:
        connection.close()
    assert post(server)[0].status == 200


def mixed_requests(count):
    random = np.random.default_rng(5)
    requests = []
    for i in range(count):
        width, height = int(random.integers(8, 400)), int(random.integers(8, 300))
        image = picture(i, width, height)
        fields = {"max_keypoints": int(random.integers(-1, 300)), "nms_radius": int(random.integers(0, 9))}
        fields["return_descriptors"] = bool(random.integers(0, 2))
        if i % 3 == 0:
            requests.append(message("POST", "/predict", json_body(encoded(image), **fields), Content_Type="application/json"))
            continue
        query = "&".join(f"{name}={value}" for name, value in fields.items())
        if i % 3 == 1:
            requests.append(message("POST", f"/predict_raw?{query}", encoded(image, "JPEG")))
        else:
            plane = np.asarray(image)[:, :, 0].tobytes()
            requests.append(message("POST", f"/predict_plane?height={height}&width={width}&{query}", plane))
    return requests


def test_concurrent_equals_serial(server):
    requests = mixed_requests(200 if LONG else 24)
    serial = [server.raw(data) for data in requests]
    assert [answer.status for answer in serial] == [200] * len(requests)
    with ThreadPoolExecutor(16) as pool:
        for expected, answer in zip(serial, pool.map(server.raw, requests)):
            assert without_timing(answer.body) == without_timing(expected.body)


@pytest.mark.parametrize("size", [(640, 480), (333, 217), (1, 1), (1600, 900)])
def test_same_result_on_every_way(server, program, weights, tmp_path, size):
    """/predict, /predict_raw, /predict_plane and the program."""
    image = picture(3, *size)
    data = encoded(image)
    query = "max_keypoints=100&nms_radius=3&keypoint_threshold=0.01"
    fields = {"max_keypoints": 100, "nms_radius": 3, "keypoint_threshold": 0.01}
    plane = np.asarray(image)[:, :, 0].tobytes()
    answers = [
        server.post("/predict", json_body(data, **fields), Content_Type="application/json").json,
        server.post("/predict_raw?" + query, data).json,
        server.post(f"/predict_plane?height={size[1]}&width={size[0]}&{query}", plane).json,
    ]
    (tmp_path / "picture.png").write_bytes(data)
    options = ["-n", "100", "--nms-radius", "3", "--keypoint-threshold", "0.01", "--descriptors", "-q"]
    command = [program, "detect", "--weights", weights, *options, tmp_path / "picture.png"]
    answers.append(json.loads(subprocess.run(command, capture_output=True, check=True, env=clean_environment()).stdout))
    for answer in answers[1:]:
        for key in ("num_keypoints", "keypoints", "scores", "descriptors", "original_size", "scale", "params"):
            assert answer[key] == answers[0][key], key
    descriptors = np.load(io.BytesIO(base64.b64decode(answers[0]["descriptors"]["data"])))["descriptors"]
    assert descriptors.shape == (answers[0]["num_keypoints"], 256)
    assert size == (1, 1) or answers[0]["num_keypoints"] > 0


def test_closed_loop(start):
    """8 clients, one request after the other: no error."""
    server = start()
    statuses = []

    def client(seed):
        with server.connect() as connection:
            for i in range(3):
                connection.send(message("POST", "/predict_raw", encoded(picture(seed * 10 + i, 64, 48))))
                statuses.append(connection.answer().status)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 24
    assert forwards(server) == 24 and server.metric("lensing_queue_length") == 0
