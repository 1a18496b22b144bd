# SPDX-License-Identifier: Apache-2.0
"""Keys, hostile pictures and bodies, and what errors tell."""
import json
import re
import struct
import time
import zlib

import pytest

from running import encoded, json_body, message, picture

PICTURE = encoded(picture())


def png_header(width, height):
    """A PNG whose header says so, with a few bytes of pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def jpeg_header(width, height):
    """A JPEG whose frame header says so."""
    data = bytearray(encoded(picture(), "JPEG"))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(data)


BOMBS = {
    "PNG 20000": png_header(20000, 20000),
    "PNG of 2^31": png_header(2**31 - 1, 2**31 - 1),
    "JPEG 64250": jpeg_header(64250, 64250),
    "BMP": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 1000, 0, 0, 54, 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0) + b"\0" * 946,
    "GIF": b"GIF89a" + struct.pack("<HH", 65535, 65535) + b"\0" * 100,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(server, sanitized, name):
    server.post("/predict_raw", BOMBS[name])
    before, times = server.rss(), []
    for _ in range(5):
        began = time.monotonic()
        answer = server.post("/predict_raw", BOMBS[name])
        times.append(time.monotonic() - began)
        assert answer.status == 400 and answer.json["detail"].startswith("bad image: "), answer
    assert min(times) < 0.1, times
    assert sanitized or server.rss() - before < 8192


def test_truncated_pictures(server):
    for kind in ("PNG", "JPEG"):
        data = encoded(picture(4, 40, 30), kind)
        with server.connect() as connection:
            for size in range(0, len(data) * 3 // 4, max(1, len(data) // 60)):
                connection.send(message("POST", "/predict_raw", data[:size]))
                answer = connection.answer()
                assert answer.status == 400 and answer.json["detail"].startswith("bad image: "), (kind, size, answer)


def test_pixel_limit(start):
    server = start("--max-pixels", str(64 * 48))
    assert server.post("/predict_raw", encoded(picture(1, 64, 48))).status == 200
    answer = server.post("/predict_raw", encoded(picture(1, 65, 48)))
    assert answer.status == 400 and "DecompressionBombError" in answer.json["detail"]


def test_extreme_sizes(server):
    for size in ((1, 1), (1, 65500), (65500, 1), (7, 7)):
        answer = server.post("/predict_raw", encoded(picture(1, *size)))
        assert answer.status == 200 and answer.json["original_size"] == {"height": size[1], "width": size[0]}


def test_large_json(server):
    """27 MB of base64 in one body."""
    data = encoded(picture(1, 3000, 2250), "BMP")
    body = json_body(data, max_keypoints=5)
    assert len(body) > 27_000_000
    answer = server.post("/predict", body, Content_Type="application/json")
    assert answer.status == 200 and answer.json["original_size"] == {"height": 2250, "width": 3000}


DEEP = {
    "arrays": b"[" * 100_000,
    "closed arrays": b"[" * 100_000 + b"]" * 100_000,
    "objects": b'{"a":' * 100_000,
    "ignored field": b'{"image":"","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "many names": b"{" + b",".join(b'"%d":0' % i for i in range(300_000)) + b"}",
    "many equal names": b"{" + b",".join([b'"image":0'] * 300_000) + b"}",
    "long number": b'{"image":"","max_keypoints":' + b"1" * 1_000_000 + b"}",
    "long escapes": b'{"image":"' + b"\\u0041" * 200_000 + b'"}',
}


@pytest.mark.parametrize("name", DEEP)
def test_hostile_json(server, sanitized, name):
    times = []
    for _ in range(3):
        began = time.monotonic()
        answer = server.post("/predict", DEEP[name], Content_Type="application/json")
        times.append(time.monotonic() - began)
        assert answer.status == 400, answer
    assert min(times) < (2 if sanitized else 0.2), times


# ---- What errors tell ---------------------------------------------------------------------------


def test_errors_tell_no_paths(server, program, weights):
    requests = [message("POST", "/predict_raw", data) for data in BOMBS.values()]
    requests += [message("POST", "/predict", data, Content_Type="application/json") for data in list(DEEP.values())[:3]]
    requests += [message("GET", "/nothing"), message("POST", "/predict_raw?nms_radius=99", b""), message("POST", "/predict", b"x")]
    requests += [message("POST", "/predict_raw", PICTURE[:-200]), message("GET", "/health", X_A="a" * 40_000)]
    for image in ("file:///etc/passwd", "/etc/passwd", "http://127.0.0.1/x.png", "../../x.png"):
        body = json.dumps({"image": image}).encode()
        requests.append(message("POST", "/predict", body, Content_Type="application/json"))
    for data in requests:
        answer = server.raw(data)
        text = answer.text
        assert answer.status >= 400 and b"server: lensing" not in answer.head.lower()
        assert str(weights) not in text and str(program) not in text and program.parent.name not in text
        assert re.search(r"\.[ch]\b|/(usr|home|tmp|etc|var|src)/", text.replace("/etc/passwd", "")) is None, text
        assert "passwd" not in text, "input of an undecodable picture is told back"


# ---- Keys ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(program, weights, tmp_path_factory):
    from running import Server

    path = tmp_path_factory.mktemp("key") / "key.txt"
    path.write_text("s3cret key\nnot the key\n")
    with Server(program, weights, "--api-key-file", path) as running:
        yield running


def test_key_is_needed(guarded):
    for method, target in [
        ("GET", "/info"), ("GET", "/v1/models"), ("GET", "/metrics"),
        ("POST", "/predict"), ("POST", "/predict_raw"), ("POST", "/predict_plane?height=1&width=1"),
    ]:
        body = PICTURE if method == "POST" else None
        wrong = ["", "Bearer", "Bearer ", "Bearer s3cret", "Bearer s3cret keyy", "Bearer S3cret key", "Basic s3cret key", "s3cret key"]
        for headers in [{}] + [{"Authorization": text} for text in wrong]:
            answer = guarded.request(method, target, body, **headers)
            assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer", (target, headers)
            assert answer.json == {"detail": "Not authenticated"}
    assert guarded.get("/info", Authorization="Bearer s3cret key").status == 200
    assert guarded.post("/predict_raw", PICTURE, Authorization="bearer s3cret key").status == 200


def test_open_routes_need_no_key(guarded):
    for target in ("/health", "/v1/health", "/ready", "/docs", "/openapi.json"):
        assert guarded.get(target).status == 200, target
    assert guarded.get("/nothing").status == 404


def test_key_is_not_logged(guarded):
    guarded.get("/info", Authorization="Bearer s3cret key")
    assert "s3cret" not in guarded.log()


def test_unusable_key_file(program, weights, tmp_path):
    from running import Server

    (tmp_path / "empty").write_text("\n")
    for name in ("empty", "none"):
        server = Server(program, weights, "--api-key-file", tmp_path / name)
        assert server.wait() == 2 and len(server.log().splitlines()) == 1
        server.close()
