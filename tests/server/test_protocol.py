# SPDX-License-Identifier: Apache-2.0
"""What arrives on the wire: strange, hostile and merely unusual requests."""
import socket
import time

import pytest

from running import LONG, encoded, message, picture, without_timing

PICTURE = encoded(picture())
BODY = b"abc"  # not a picture: answered with 400 and "bad image", so that a body of the right length can be told
HEAD = b"POST /predict_raw HTTP/1.1\r\nHost: t\r\n"
LIST = message("GET", "/v1/models")
BAD_IMAGE = "bad image: UnidentifiedImageError"


def chunked(*parts, end=b"0\r\n\r\n"):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


# ---- Requests that must be refused --------------------------------------------------------------

REFUSED = {
    "length and coding": (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(BODY), {400}),
    "coding and length": (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + chunked(BODY), {400}),
    "two lengths": (HEAD + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", {400}),
    "two equal lengths": (HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", {400}),
    "list of lengths": (HEAD + b"Content-Length: 3, 3\r\n\r\nabc", {400}),
    "length with plus": (HEAD + b"Content-Length: +3\r\n\r\nabc", {400}),
    "length with minus": (HEAD + b"Content-Length: -3\r\n\r\nabc", {400}),
    "length in hexadecimal": (HEAD + b"Content-Length: 0x3\r\n\r\nabc", {400}),
    "length with a blank inside": (HEAD + b"Content-Length: 3 3\r\n\r\nabc", {400}),
    "empty length": (HEAD + b"Content-Length: \r\n\r\nabc", {400}),
    "length beyond 64 bits": (HEAD + b"Content-Length: 18446744073709551617\r\n\r\nabc", {400, 413}),
    "length of 64 bits": (HEAD + b"Content-Length: 18446744073709551615\r\n\r\nabc", {400, 413}),
    "blank before colon": (HEAD + b"Content-Length : 3\r\n\r\nabc", {400}),
    "tab before colon": (HEAD + b"Content-Length\t: 3\r\n\r\nabc", {400}),
    "unknown coding": (HEAD + b"Transfer-Encoding: xchunked\r\n\r\n" + chunked(BODY), {400, 501}),
    "two codings": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunked(BODY), {400, 501}),
    "coding twice": (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(BODY), {400, 501}),
    "identity coding": (HEAD + b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc", {400, 501}),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", {400}),
    "two hosts": (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
    "NUL in a value": (b"GET /health HTTP/1.1\r\nHost: t\r\nX-A: a\0b\r\nX-B: c\r\n\r\n", {400}),
    "NUL in the last value": (b"GET /health HTTP/1.1\r\nHost: t\r\nX-A: a\0b\r\n\r\n", {400}),
    "NUL in the host": (b"GET /health HTTP/1.1\r\nHost: t\0u\r\nX-A: a\r\n\r\n", {400}),
    "NUL in a name": (b"GET /health HTTP/1.1\r\nHost: t\r\nX\0A: a\r\n\r\n", {400}),
    "NUL in the target": (b"GET /health\0x HTTP/1.1\r\nHost: t\r\n\r\n", {400, 404}),
    "control byte in a value": (b"GET /health HTTP/1.1\r\nHost: t\r\nX-A: a\x01b\r\n\r\n", {400}),
    "delete in a value": (b"GET /health HTTP/1.1\r\nHost: t\r\nX-A: a\x7fb\r\n\r\n", {400}),
    "carriage return in a value": (b"GET /health HTTP/1.1\r\nHost: t\r\nX-A: a\rX-B: b\r\n\r\n", {400}),
    "control byte in a name": (b"GET /health HTTP/1.1\r\nHost: t\r\nX\x01A: a\r\n\r\n", {400}),
    "folded length": (HEAD + b"Content-Length: 3\r\n 3\r\n\r\nabc", {400}),
    "no name": (b"GET /health HTTP/1.1\r\nHost: t\r\n: a\r\n\r\n", {400}),
    "no colon": (b"GET /health HTTP/1.1\r\nHost: t\r\nnonsense\r\n\r\n", {400}),
    "no version": (b"GET /health\r\nHost: t\r\n\r\n", {400}),
    "unknown version": (b"GET /health HTTP/3.7\r\nHost: t\r\n\r\n", {400, 505}),
    "words": (b"hello there you\r\n\r\n", {400}),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 32 + b"\r\n\r\n", {400, None}),
    "size of a chunk is no number": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", {400}),
    "size of a chunk is negative": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", {400}),
    "size of a chunk is too large": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc", {400, 413}),
    "chunk longer than its size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", {400}),
}


# Requests that libmicrohttpd ends the connection for, without an answer, from 1.0 on.
ENDED = {"NUL in the target"}


@pytest.fixture
def is_new(server):
    """Whether the libmicrohttpd is one of those from 1.0 on, which read some requests differently."""
    return server.http_library() >= (1, 0)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(server, is_new, name):
    """Refused, closed, and what follows is not taken for another request."""
    data, statuses = REFUSED[name]
    if is_new and name in ENDED:
        statuses = {None}
    with server.connect() as connection:
        connection.send(data + b"GET /v1/models HTTP/1.1\r\nHost: smuggled\r\n\r\n")
        answer = connection.answer()
        assert (answer.status if answer else None) in statuses, answer
        rest = connection.rest()
        assert b"list" not in rest, f"another request was seen: {rest}"
    assert server.get("/health").status == 200


# ---- Requests that must be answered -------------------------------------------------------------


def test_folded_line(server, is_new):
    """Refused, or read with blanks for the line end: RFC 9112 allows both."""
    with server.connect() as connection:
        connection.send(b"GET /health HTTP/1.1\r\nHost: t\r\nX-A: a\r\n b\r\n\r\n" + LIST)
        if is_new:
            assert connection.answer().json["status"] == "ok" and connection.answer().json["object"] == "list"
        else:
            assert connection.answer().status == 400 and b"list" not in connection.rest()


def test_chunks_with_trailers(server, is_new):
    with server.connect() as connection:
        head = HEAD + b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        connection.send(head + chunked(PICTURE, end=b"0\r\nX-Sum: 1\r\n\r\n") + LIST)
        assert connection.answer().status == 200
        if is_new:
            assert connection.rest() == b""
        else:
            assert connection.answer().json["object"] == "list"


def test_extensions_of_chunks(server, is_new):
    """libmicrohttpd 1.0 takes their line end for the first byte of the chunk, so it refuses the request."""
    body = b"%x;name=value;other\r\n%s\r\n" % (30, PICTURE[:30]) + chunked(PICTURE[30:], end=b"0;last\r\n\r\n")
    with server.connect() as connection:
        connection.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body + LIST)
        if is_new:
            assert connection.answer().status == 400 and connection.rest() == b""
        else:
            assert connection.answer().status == 200 and connection.answer().json["object"] == "list"


@pytest.mark.parametrize("end", [b"0;last", b"0 ;last", b"0"])
def test_requests_do_not_hide_in_a_trailer(server, end):
    """Neither where the last chunk has an extension, whose line end libmicrohttpd 1.0 takes for the end of the body."""
    with server.connect() as connection:
        hidden = b"GET /v1/models HTTP/1.1\r\nHost: smuggled\r\n\r\n"
        connection.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(PICTURE, end=end + b"\r\n" + hidden))
        assert connection.answer().status in (200, 400)
        connection.socket.shutdown(socket.SHUT_WR)
        assert b"list" not in connection.rest()


def test_coding_in_capitals(server):
    assert server.raw(HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + chunked(PICTURE)).status == 200


def test_head_and_options(server):
    for method in ("HEAD", "OPTIONS", "DELETE", "PUT", "PATCH", "TRACE", "BREW"):
        with server.connect() as connection:
            connection.send(message(method, "/health") + message("GET", "/health"))
            answer = connection.answer(method)
            assert answer.status == 405 and answer.headers["allow"] == "GET", method
            assert connection.answer().json["status"] == "ok", f"{method}: a body where there must be none"
    answer = server.get("/predict")
    assert answer.status == 405 and answer.headers["allow"] == "POST" and answer.json == {"detail": "Method Not Allowed"}


def test_expect_continue(server):
    with server.connect() as connection:
        connection.send(message("POST", "/predict_raw", Expect="100-continue", Content_Length=len(PICTURE)))
        while b"\r\n\r\n" not in connection.buffer:
            assert connection.more()
        assert connection.buffer.startswith(b"HTTP/1.1 100 ")
        connection.send(PICTURE)
        assert connection.answer().status == 200


def test_expect_continue_is_refused_early(server):
    """The body is never asked for when the answer is known."""
    for target, length, status in [
        ("/predict_raw", 1 << 40, 413),
        ("/predict_plane?height=2&width=2", 5, 400),
        ("/nothing", 5, 404),
    ]:
        with server.connect() as connection:
            connection.send(message("POST", target, Expect="100-continue", Content_Length=length))
            while b"\r\n\r\n" not in connection.buffer:
                assert connection.more()
            assert connection.buffer.startswith(b"HTTP/1.1 %d " % status)
            assert connection.answer().status == status and connection.is_closed()


def test_http_1_0(server):
    with server.connect() as connection:
        connection.send(b"GET /health HTTP/1.0\r\n\r\n")
        answer = connection.answer()
        assert answer.status == 200 and answer.headers["connection"].lower() == "close"
        assert connection.is_closed()


def test_connection_close(server):
    with server.connect() as connection:
        connection.send(message("GET", "/health", Connection="close"))
        assert connection.answer().headers["connection"].lower() == "close"
        assert connection.is_closed()


def test_bare_line_feeds(server):
    assert server.raw(b"GET /health HTTP/1.1\nHost: t\nX-A: b\n\n").status == 200


def test_unusual_headers(server):
    """Blanks around values, empty values, bytes above 127."""
    data = b"GET /health HTTP/1.1\r\nHost: t\r\nX-A:\r\nX-B:   b \t \r\nX-C:\tc d\r\nX-D: \xc3\xa9\xff\r\nX-E: \r\n\r\n"
    assert server.raw(data).status == 200


def test_upgrade_is_ignored(server):
    assert server.get("/health", Connection="Upgrade", Upgrade="websocket").status == 200


def test_paths(server):
    assert server.get("/%68ealth").status == 200
    assert server.get("/v1%2Fmodels").status == 200
    assert server.get("/health?a=b&c").status == 200
    for path in ("//health", "/HEALTH", "/health%00", "/health%2", "/..%2fhealth", "/etc/passwd", "/v1/models/x", "/%"):
        answer = server.get(path)
        assert answer.status == 404 and answer.json == {"detail": "Not Found"}, path


@pytest.mark.parametrize("target, location", [("/health/", "/health"), ("/info/?a=b&c=d", "/info?a=b&c=d")])
def test_trailing_slash(server, target, location):
    answer = server.get(target)
    assert answer.status == 307 and answer.headers["location"] == "http://test" + location and answer.body == b""
    assert server.get("/nothing/").status == 404


# ---- Limits -------------------------------------------------------------------------------------


def test_target_limit(server):
    assert server.get("/health?" + "a" * 8000).status == 200
    answer = server.get("/health?" + "a" * 9000)
    assert answer.status == 414 and answer.headers["connection"].lower() == "close"
    assert server.get("/health?" + "a" * 200_000).status == 414


def test_header_limits(server):
    assert server.get("/health", X_A="a" * 30_000).status == 200
    for size in (33_000, 40_000, 70_000, 500_000):
        assert server.get("/health", X_A="a" * size).status == 431, size
    assert server.get("/health", **{f"X_{i}": "a" for i in range(98)}).status == 200
    assert server.get("/health", **{f"X_{i}": "a" for i in range(101)}).status == 431
    assert server.get("/health", **{f"X_{i}": "" for i in range(9000)}).status == 431


def test_body_limit_by_length(start):
    """Answered at once, before the body."""
    small = start("--max-body", "1")
    with small.connect() as connection:
        connection.send(message("POST", "/predict_raw", Content_Length=(1 << 20) + 1))
        answer = connection.answer()
        assert answer.status == 413 and answer.json["detail"] and connection.is_closed()
    assert small.post("/predict_raw", b"\0" * (1 << 20)).status == 400


def test_client_that_sends_too_much_reads_the_answer(start):
    small = start("--max-body", "1")
    for _ in range(5):
        assert small.post("/predict_raw", b"\0" * (8 << 20)).status == 413


def test_body_limit_by_chunks(start):
    small = start("--max-body", "1")
    part = b"\0" * (1 << 16)
    for parts, status in (([part] * 16, 400), ([part] * 16 + [b"\0"], 413)):
        answer = small.raw(message("POST", "/predict_raw", Transfer_Encoding="chunked") + chunked(*parts))
        assert answer.status == status, answer


def test_endless_chunks(start):
    """A body without an end is not read for ever."""
    small = start("--max-body", "1")
    with small.connect() as connection:
        connection.send(message("POST", "/predict_raw", Transfer_Encoding="chunked"))
        part = chunked(b"\0" * (1 << 16), end=b"")
        for _ in range(2000):
            try:
                connection.socket.sendall(part)
            except OSError:
                break
        else:
            pytest.fail("125 MB were taken with a limit of 1 MB")


def test_tiny_chunks(server, sanitized):
    """65,537 chunks of one byte cost no memory beyond the body's."""
    data = message("POST", "/predict_raw", Transfer_Encoding="chunked") + chunked(*[b"\0"] * 65_537)
    assert server.raw(data).status == 400
    before = server.rss()
    for _ in range(3):
        assert server.raw(data).status == 400
    if not sanitized:
        assert server.rss() - before < 8192


# ---- Ways to send -------------------------------------------------------------------------------


def test_byte_at_a_time(server):
    data = message("POST", "/predict_raw?max_keypoints=7", encoded(picture(2, 16, 12)), X_A="b")
    expected = server.raw(data)
    assert expected.status == 200
    with server.connect() as connection:
        for i in range(len(data)):
            connection.send(data[i : i + 1])
        assert without_timing(connection.answer().body) == without_timing(expected.body)


@pytest.mark.parametrize("data", [message("GET", "/info?a=b", X_A="b"), message("GET", "/v1/models/", Connection="close")])
def test_every_split_of_good_requests(server, data):
    expected = server.raw(data)
    assert expected.status in (200, 307)
    for i in range(1, len(data)):
        with server.connect() as connection:
            connection.send(data[:i])
            time.sleep(0.001)
            connection.send(data[i:])
            answer = connection.answer()
            assert (answer.status, answer.body) == (expected.status, expected.body), i


@pytest.mark.skipif(not LONG, reason="runs the network 300 times; LENSING_LONG is not set")
def test_every_split_of_a_picture(server):
    data = message("POST", "/predict_raw?max_keypoints=7", encoded(picture(2, 16, 12)), X_A="b")
    check_every_split(server, data, 200)


def check_every_split(server, data, status):
    expected = server.raw(data)
    assert expected.status == status
    for i in range(1, len(data)):
        with server.connect() as connection:
            connection.send(data[:i])
            time.sleep(0.001)
            connection.send(data[i:])
            assert without_timing(connection.answer().body) == without_timing(expected.body), i


def test_every_split(server):
    data = message("POST", "/predict_plane?height=2&width=3", b"abcde", X_A="b")  # one byte is missing: 400 at once
    check_every_split(server, data, 400)


def test_pipeline(server):
    """100 requests in one piece are answered in order, whatever the engine has to do for them."""
    targets = ["/health", "/nothing", "/v1/models", "/predict_raw?max_keypoints=%d"]
    requests, expected = [], []
    for i in range(100):
        target = targets[i % 4] % i if i % 4 == 3 else targets[i % 4]
        is_slow = i % 4 == 3 and i % 20 == 3
        body = (PICTURE if is_slow else BODY) if i % 4 == 3 else None
        requests.append(message("POST" if body else "GET", target, body))
        expected.append((200, i) if is_slow else ({0: 200, 1: 404, 2: 200, 3: 400}[i % 4], None))
    with server.connect() as connection:
        connection.send(b"".join(requests))
        for status, count in expected:
            answer = connection.answer()
            assert answer.status == status, answer
            assert count is None or answer.json["params"]["max_keypoints"] == count


def test_long_keep_alive(server, sanitized):
    """10,000 requests on one connection leave nothing behind."""
    requests = [message("GET", "/health"), message("GET", "/info"), message("POST", "/predict_raw", BODY)]
    with server.connect() as connection:
        for i in range(1000 if sanitized else 10_000):
            connection.send(requests[i % 3])
            assert connection.answer().status == (400 if i % 3 == 2 else 200)
            if i == 500:
                before = server.rss(), server.descriptors()
        assert server.descriptors() == before[1]
        assert sanitized or server.rss() - before[0] < 4096


def test_request_lines_only(start, sanitized):
    """Connections that end after the first line leave nothing behind."""
    server = start()
    sizes = []
    for _ in range(3):
        for _ in range(200):
            with server.connect() as connection:
                connection.send(b"GET /health?" + b"a" * 4000 + b" HTTP/1.1\r\n")
        server.wait_for_metric("lensing_connections", 1)
        sizes.append((server.rss(), server.descriptors()))
    assert abs(sizes[2][1] - sizes[0][1]) <= 1
    assert sanitized or sizes[2][0] - sizes[0][0] < 8192
    assert server.stop() == 0
