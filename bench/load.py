# SPDX-License-Identifier: Apache-2.0
"""Puts load on a running server and measures its answers.

    python bench/load.py http://127.0.0.1:20000 photo.jpg... --clients 8 --seconds 10
    python bench/load.py http://127.0.0.1:20000 photo.jpg... --rate 25 --seconds 20 --route predict

Closed loop (--clients): each client sends its next request when it has the answer to its last. Open loop (--rate): requests
are sent at fixed times, whatever the server does; latency then counts from the time a request was due, and how late this
program itself was is given apart. Connections are kept alive. Photos are taken in turn.

Latencies are in milliseconds, from the first byte sent to the last byte received, apart for each status. A percentile is
the smallest measured value that at least so many percent of the values do not exceed. The program ends by itself: nothing
is sent after --seconds, and what is not answered --timeout seconds after it was sent counts as an error.
"""
import argparse
import asyncio
import base64
import collections
import itertools
import json
import math
import pathlib
import re
import sys
import time
import urllib.parse

MAX_SECONDS = 3600
MAX_CONNECTIONS = 1000
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CONNECTION_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
TIMING = re.compile(rb'"timing_ms":\{[^}]*\}')


def percentile(values, share):
    """The smallest of the sorted values that at least this share of them does not exceed."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


def summarize(milliseconds):
    values = sorted(milliseconds)
    figures = {"count": len(values)}
    if values:
        figures |= {name: percentile(values, share) for name, share in SHARES.items()}
        figures["max"] = values[-1]
    return figures


def read_head(head):
    """Status and length of the body, from the bytes up to the empty line."""
    length = CONTENT_LENGTH.search(head)
    if not head.startswith(b"HTTP/1.1 ") or length is None:
        raise ConnectionError("an answer that is not HTTP/1.1 with a Content-Length")
    return int(head[9:12]), int(length[1])


class Target:
    """Where a server is: http://HOST:PORT."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.path.strip("/") or parts.query:
            raise ValueError(f"{url}: not of the form http://HOST:PORT")
        self.host, self.port = parts.hostname, parts.port or 80

    def message(self, method, path, body=b"", content_type="application/octet-stream"):
        head = (f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: {content_type}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n")
        return head.encode() + body

    def predict_raw(self, picture, **fields):
        return self.message("POST", "/predict_raw?" + urllib.parse.urlencode(fields), picture)

    def predict(self, picture, **fields):
        body = json.dumps({"image": base64.b64encode(picture).decode(), **fields}).encode()
        return self.message("POST", "/predict", body, "application/json")


class Connection(asyncio.BufferedProtocol):
    """One keep-alive connection with at most one request on its way. Of an answer it reads status and length."""

    def __init__(self):
        self.buffer, self.filled, self.head, self.total = bytearray(1 << 16), 0, 0, None
        self.transport, self.waiter, self.status, self.closing, self.finished = None, None, 0, False, 0.0

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, error):
        self.fail(error or ConnectionError("closed without an answer"))

    def fail(self, error):
        self.closing = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(error)

    def get_buffer(self, _):
        if self.filled == len(self.buffer):
            self.make_room(2 * self.filled)
        return memoryview(self.buffer)[self.filled:]

    def make_room(self, size):
        """In a new buffer, as the event loop may still hold the old one."""
        larger = bytearray(size)
        larger[:self.filled] = self.buffer[:self.filled]
        self.buffer = larger

    def buffer_updated(self, count):
        self.filled += count
        if self.total is None:
            try:
                self.read_head()
            except ConnectionError as error:
                self.fail(error)
        if self.total is not None and self.filled >= self.total and self.waiter is not None and not self.waiter.done():
            self.finished = time.perf_counter()
            self.waiter.set_result(self.status)

    def read_head(self):
        end = self.buffer.find(b"\r\n\r\n", 0, self.filled)
        if end < 0:
            return
        head = bytes(self.buffer[:end])
        self.status, length = read_head(head)
        self.closing = CONNECTION_CLOSE.search(head) is not None
        self.head, self.total = end + 4, end + 4 + length
        if self.total > len(self.buffer):
            self.make_room(self.total)

    async def exchange(self, message, timeout):
        """Sends a request; returns the status of its answer, which body() then has."""
        self.filled, self.total, self.waiter = 0, None, asyncio.get_running_loop().create_future()
        self.transport.write(message)
        return await asyncio.wait_for(self.waiter, timeout)

    def body(self):
        return bytes(self.buffer[self.head:self.total])

    def body_is(self, parts):
        """Whether the body begins and ends with these two."""
        return (self.buffer.startswith(parts[0], self.head, self.total)
                and self.buffer.endswith(parts[1], self.head, self.total))


def around_timing(body):
    """The two parts of an answer that are the same for the same request."""
    timing = TIMING.search(body)
    return (body[:timing.start()], body[timing.end():]) if timing else (body, b"")


class Load:
    """Sends requests, in turn those of a list, and keeps what became of them.

    `expected`, if given, has for each of them the two parts that an answer 200 must begin and end with."""

    def __init__(self, target, requests, timeout=60.0, expected=None):
        self.target, self.timeout = target, timeout
        self.requests = itertools.cycle(list(zip(requests, expected or [None] * len(requests))))
        self.idle, self.opened = [], 0
        self.latencies = collections.defaultdict(list)  # by status
        self.errors = collections.Counter()
        self.lags = []
        self.unequal = 0
        self.began = self.ended = time.perf_counter()

    async def connection(self):
        while self.idle:
            connection = self.idle.pop()
            if not connection.closing:
                return connection
            connection.transport.close()
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Connection, self.target.host, self.target.port))[1]

    async def send(self, due=None):
        """One request and its answer; returns the status, 0 after an error."""
        message, expected = next(self.requests)
        connection, status = None, 0
        self.opened += 1
        try:
            connection = await self.connection()
            now = time.perf_counter()
            started = now if due is None else due
            self.lags.append((now - started) * 1e3)
            status = await connection.exchange(message, self.timeout)
            self.ended = max(self.ended, connection.finished)
            self.latencies[status].append((connection.finished - started) * 1e3)
            if status == 200 and expected is not None and not connection.body_is(expected):
                self.unequal += 1
        except (OSError, asyncio.TimeoutError) as error:
            self.errors[type(error).__name__] += 1
        finally:
            self.opened -= 1
            if connection is not None:
                if status and not connection.closing:
                    self.idle.append(connection)
                else:
                    connection.transport.abort()
        return status

    async def closed_loop(self, clients, seconds):
        self.began = time.perf_counter()
        end = self.began + seconds

        async def client():
            while time.perf_counter() < end:
                if await self.send() == 0:
                    await asyncio.sleep(0.1)  # not to spin when there is no server

        await asyncio.gather(*(client() for _ in range(clients)))

    async def open_loop(self, rate, seconds):
        """Returns when everything is answered."""
        self.began = time.perf_counter()
        tasks = set()
        for index in range(round(rate * seconds)):
            due = self.began + index / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if self.opened >= MAX_CONNECTIONS:
                self.errors["not sent, too many unanswered"] += 1
                continue
            task = asyncio.ensure_future(self.send(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks)

    def close(self):
        for connection in self.idle:
            connection.transport.close()
        self.idle.clear()

    def summary(self):
        """The figures; throughput counts answers 200 up to the last answer."""
        seconds = self.ended - self.began
        return {"seconds": seconds, "throughput": len(self.latencies[200]) / seconds if seconds > 0 else 0.0,
                "latency_ms": {status: summarize(values) for status, values in sorted(self.latencies.items()) if values},
                "errors": dict(self.errors), "unequal": self.unequal, "lag_ms": summarize(self.lags)}


async def serial_answers(target, requests, timeout=60.0):
    """Sends each request once, one after another; returns the bodies."""
    bodies = []
    load = Load(target, requests, timeout)
    for message in requests:
        connection = await load.connection()
        status = await connection.exchange(message, timeout)
        if status != 200:
            raise ConnectionError(f"the server answers {status}: {connection.body()[:200].decode(errors='replace')}")
        bodies.append(connection.body())
        if not connection.closing:
            load.idle.append(connection)
    load.close()
    return bodies


async def measure(target, requests, seconds, clients=1, rate=None, timeout=60.0, check=False):
    """The figures of one run; with `check`, answers are compared with those of the same requests one at a time."""
    expected = None
    if check:
        expected = [around_timing(body) for body in await serial_answers(target, requests, timeout)]
    load = Load(target, requests, timeout, expected)
    await (load.open_loop(rate, seconds) if rate is not None else load.closed_loop(clients, seconds))
    load.close()
    return load.summary()


def print_summary(figures):
    print(f"{figures['throughput']:.2f} answers 200 a second over {figures['seconds']:.1f} s")
    rows = [(str(status), row) for status, row in figures["latency_ms"].items()] + [("sent late", figures["lag_ms"])]
    print(f"{'':9} {'count':>8}" + "".join(f"{name:>10}" for name in (*SHARES, "max")) + "  ms")
    for name, row in rows:
        if row["count"]:
            print(f"{name:9} {row['count']:8}" + "".join(f"{row[key]:10.2f}" for key in (*SHARES, "max")))
    for name, count in figures["errors"].items():
        print(f"{name}: {count}")
    if figures["unequal"]:
        print(f"answers that differ from the serial ones: {figures['unequal']}")


def field(text):
    name, mark, value = text.partition("=")
    if not mark:
        raise argparse.ArgumentTypeError(f"{text}: not of the form NAME=VALUE")
    return name, value


def bounded(kind, low, high):
    def parse(text):
        value = kind(text)
        if not low < value <= high:
            raise argparse.ArgumentTypeError(f"{text}: not above {low} and up to {high}")
        return value

    parse.__name__ = kind.__name__
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="http://HOST:PORT of the server")
    parser.add_argument("photos", type=pathlib.Path, nargs="+", help="image files")
    loop = parser.add_mutually_exclusive_group()
    loop.add_argument("--clients", type=bounded(int, 0, MAX_CONNECTIONS), default=1, help="closed loop (default %(default)s)")
    loop.add_argument("--rate", type=bounded(float, 0, 10000), help="open loop, requests a second")
    parser.add_argument("--seconds", type=bounded(float, 0, MAX_SECONDS), default=10.0, help="default %(default)s")
    parser.add_argument("--timeout", type=bounded(float, 0, MAX_SECONDS), default=60.0, help="for one answer, seconds "
                        "(default %(default)s)")
    parser.add_argument("--route", choices=("predict_raw", "predict"), default="predict_raw",
                        help="the file as the body, or base64 in JSON (default %(default)s)")
    parser.add_argument("--set", type=field, action="append", default=[], metavar="NAME=VALUE", dest="fields",
                        help="a parameter of the request")
    parser.add_argument("--check", action="store_true", help="compare answers with those of requests one at a time")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    try:
        target = Target(options.url)
        make = getattr(target, options.route)
        requests = [make(photo.read_bytes(), **dict(options.fields)) for photo in options.photos]
        figures = asyncio.run(measure(target, requests, options.seconds, options.clients, options.rate, options.timeout,
                                      options.check))
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise SystemExit(f"{parser.prog}: {error or type(error).__name__}")
    print_summary(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    sys.exit(1 if figures["errors"] or figures["unequal"] else 0)


if __name__ == "__main__":
    main()
