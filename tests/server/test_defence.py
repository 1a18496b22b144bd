# SPDX-License-Identifier: Apache-2.0
"""Keys, hostile pictures and bodies, and what errors tell."""
import json
import re
import socket
import struct
import subprocess
import time
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from running import LONG, STRICT, cpu_seconds, encoded, json_body, message, picture

PICTURE = encoded(picture())


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, compressed, *chunks):
    """An RGB PNG with these chunks before its pixels."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IDAT", compressed) + chunk(b"IEND", b"")


def png_header(width, height):
    """A PNG whose header says so, with a few bytes of pixels."""
    return png(width, height, zlib.compress(b"\0" * 1000))


def zeros(size):
    """So many zeros, compressed."""
    packer = zlib.compressobj(9)
    block = bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(size >> 20)] + [packer.compress(bytes(size % (1 << 20)))]
    return b"".join(parts) + packer.flush()


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
    grown = server.rss() - before
    print(f"\n{min(times) * 1e3:.2f} ms, memory grew by {grown} kB")
    assert min(times) < (0.01 if STRICT else 0.1), times
    assert sanitized or grown < (2048 if STRICT else 8192)


def test_flat_picture(start, sanitized):
    """100 million pixels in 300 kB: one byte for each pixel, and little besides, as SECURITY.md says."""
    side = 10_000
    data = png(side, side, zeros(side * (3 * side + 1)))
    assert len(data) < 400_000
    server = start()
    before = server.status("VmHWM")
    answer = server.post("/predict_raw", data)
    assert answer.status == 200 and answer.json["original_size"] == {"height": side, "width": side}
    grown = server.status("VmHWM") - before
    print(f"\npeak memory grew by {grown} kB for {side * side // 1000} kB of plane")
    assert sanitized or grown < 1.1 * side * side / 1000 + 16384
    answer = start("--max-pixels", str(side * side - 1)).post("/predict_raw", data)
    assert answer.status == 400 and "DecompressionBombError" in answer.json["detail"]


def test_many_scans(server, sanitized):
    """A progressive JPEG whose last scan comes 10,000 times."""
    data = encoded(picture(1, 640, 480), "JPEG", progressive=True)
    scan = data.rindex(b"\xff\xda")
    bomb = data[:scan] + data[scan:-2] * 10_000 + b"\xff\xd9"
    before = cpu_seconds(server.pid)
    answer = server.post("/predict_raw", bomb)
    spent = cpu_seconds(server.pid) - before
    print(f"\n{len(bomb)} bytes, {spent:.2f} s of CPU time")
    assert answer.status == 400 and "scans" in answer.json["detail"], answer
    assert spent < (10 if sanitized else 1)


@pytest.mark.parametrize("kind, start_of_text", [("zTXt", b"key\0\0"), ("iCCP", b"name\0\0"), ("iTXt", b"key\0\1\0\0\0")])
def test_compressed_texts(server, sanitized, kind, start_of_text):
    """Texts and profiles that inflate to a gigabyte are skipped."""
    data = encoded(picture(1, 32, 24))
    text = chunk(kind.encode(), start_of_text + zeros(1 << 30 if LONG else 1 << 28))
    bomb = data[:33] + text + data[33:]
    assert server.post("/predict_raw", bomb).status == 200
    before, began = server.rss(), cpu_seconds(server.pid)
    answer = server.post("/predict_raw?return_descriptors=false", bomb)
    grown = server.rss() - before
    print(f"\n{len(bomb)} bytes, memory grew by {grown} kB, {cpu_seconds(server.pid) - began:.2f} s of CPU time")
    assert answer.status == 200
    assert sanitized or grown < (2048 if STRICT else 8192)


def whole(kind):
    """A file of about 20 kB for LENSING_LONG, of about 2 kB without."""
    random = np.random.default_rng(1)
    size = {"PNG": 80, "JPEG": 170}[kind] if LONG else {"PNG": 24, "JPEG": 40}[kind]
    return encoded(Image.fromarray(random.integers(0, 256, (size, size, 3), np.uint8)), kind)


def pillow_opens(data):
    try:
        Image.open(BytesIO(data)).convert("RGB")
        return True
    except (OSError, SyntaxError):
        return False


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_truncated_pictures(server, kind):
    """At every byte of a file of 20 kB with LENSING_LONG, at every twentieth of one of 2 kB without."""
    data, seen = whole(kind), {}
    connection = server.connect()
    for size in range(0, len(data), 1 if LONG else 20):
        connection.send(message("POST", "/predict_raw?max_keypoints=1&return_descriptors=false", data[:size]))
        answer = connection.answer()
        seen[answer.status] = seen.get(answer.status, 0) + 1
        if answer.status == 200:  # only what comes after the pixels is missing
            assert pillow_opens(data[:size]), size
        else:
            assert answer.status == 400 and answer.json["detail"].startswith("bad image: "), (size, answer)
    connection.close()
    print(f"\n{len(data)} bytes, answers {seen}")
    assert seen.get(200, 0) <= 20  # without the checksums of the pixels and the end chunk of a PNG


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
    print(f"\n{min(times) * 1e3:.2f} ms")
    assert min(times) < (2 if sanitized else 0.005 if STRICT and "many" not in name else 0.2), times


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


def test_help_and_documents_give_the_same_limits(program, root):
    text = subprocess.run([program, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"\| `(--[a-z-]+)` \| (\d+)", (root / "docs" / "server.md").read_text())
    assert len(rows) == 12
    for option, default in rows:
        # The text of an option goes on until the next one; its default is at the end, in brackets.
        found = re.search(rf"{option} [^\[]*\[(\d+)\]", text)
        assert found and found[1] == default, (option, default, found)
    assert re.search(r"--host [^\[]*\[127\.0\.0\.1\]", text)


def test_no_address_is_followed(server):
    """Nothing in a request makes the server open a connection or a file."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.3)
        address = f"http://127.0.0.1:{trap.getsockname()[1]}/x.png"
        for body in ({"image": address}, {"image": "", "url": address}, {"image_url": address}):
            data = json.dumps(body).encode()
            assert server.post("/predict", data, Content_Type="application/json").status == 400
        assert server.post(f"/predict_raw?url={address}", b"").status == 400
        assert server.get("/health", X_Forwarded_For=address, Referer=address).status == 200
        with pytest.raises(socket.timeout):
            trap.accept()


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
