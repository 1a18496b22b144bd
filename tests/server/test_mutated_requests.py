# SPDX-License-Identifier: Apache-2.0
"""Requests with random damage, byte by byte on the wire: each gets answers that are HTTP, or the end of the connection.

LENSING_MUTATED_REQUESTS is how many, 400 if it is not set; LENSING_SEED picks others. With a build with sanitizers this
is a fuzz test of libmicrohttpd and of what stands behind it together."""
import os
import random
from concurrent.futures import ThreadPoolExecutor

from running import encoded, json_body, message, picture

COUNT = int(os.environ.get("LENSING_MUTATED_REQUESTS", 400))
SEED = int(os.environ.get("LENSING_SEED", 1))
STATUSES = {100, 200, 307, 400, 401, 404, 405, 408, 413, 414, 417, 431, 500, 501, 503, 505}

IMAGE = encoded(picture(1, 24, 16))
SEEDS = [
    message("GET", "/health", Accept="*/*", Connection="keep-alive"),
    message("GET", "/info/?a=b&c=%20d", X_A="b"),
    message("GET", "/metrics") + message("GET", "/v1/models"),
    message("POST", "/predict", json_body(IMAGE, max_keypoints=5, nms_radius=3), Content_Type="application/json"),
    message("POST", "/predict_raw?max_keypoints=5&keypoint_threshold=0.1&return_descriptors=no", IMAGE),
    message("POST", "/predict_plane?height=6&width=7", bytes(range(42)), Expect="100-continue"),
    message("POST", "/predict_raw", Transfer_Encoding="chunked") + b"3;x=y\r\nabc\r\n5\r\ndefgh\r\n0\r\nX-T: 1\r\n\r\n",
    b"GET /health HTTP/1.0\r\n\r\n",
]
TOKENS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n\r\n", b"%00", b"%", b"?", b"&", b"=", b"/", b"..", b"#", b"\xff",
    b"HTTP/1.1", b"HTTP/9.9", b"Host: a\r\n", b"Content-Length: 3\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"0\r\n\r\n",
    b"ffffffff\r\n", b"a" * 3000, b"X: y\r\n" * 120,
]  # fmt: skip


def damaged(number):
    chance = random.Random(SEED * 1_000_003 + number)
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.choice([1, 1, 2, 4, 8])):
        at = chance.randrange(len(data) + 1)
        until = min(len(data), at + chance.choice([1, 2, 5, 20]))
        kind = chance.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at:until]
        elif kind == 2:
            data[at:at] = data[at:until] * chance.choice([1, 3, 50])
        elif kind == 3:
            data[at:at] = chance.choice(TOKENS)
        elif kind == 4:
            data[at:until] = chance.randbytes(until - at)
        else:
            data += chance.choice(SEEDS)
    return bytes(data)


def statuses(text):
    """Statuses of the answers in all that came back. Fails if it does not begin with one."""
    assert text == b"" or text.startswith(b"HTTP/1."), text[:200]
    return [int(line[9:12]) for line in text.split(b"\r\n") if line.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))]


def test_mutated_requests(start):
    server = start()
    # The newer libmicrohttpd sends targets with blanks to what they should have been.
    expected = STATUSES | {301} if server.http_library() >= (1, 0) else STATUSES
    seen = {}

    def send(number):
        data = damaged(number)
        with server.connect(60) as connection:
            connection.send(data)
            try:
                connection.socket.shutdown(1)
            except OSError:
                pass
            found = statuses(connection.rest())
        assert set(found) <= expected, (number, data, found)
        return found

    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(send, range(COUNT)):
            for status in found or [None]:
                seen[status] = seen.get(status, 0) + 1
    print(f"\n{COUNT} damaged requests, answers {seen}")
    assert seen.get(400, 0) > COUNT // 10 and seen.get(200, 0) > COUNT // 100
    assert server.post("/predict_raw", IMAGE).status == 200
    assert server.stop() == 0
