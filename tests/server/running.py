# SPDX-License-Identifier: Apache-2.0
"""Runs the server and speaks HTTP to it byte by byte."""
import base64
import ctypes
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

TIME_LIMIT = 120  # seconds for anything that has to come at all
# Numbers that hold on an idle machine only are asserted when LENSING_STRICT is set; else wider ones, for any machine.
STRICT = bool(os.environ.get("LENSING_STRICT"))
# The whole of a test that by default takes a sample.
LONG = bool(os.environ.get("LENSING_LONG"))
VARIABLES = ["LENSING_CPU", "HF_MODEL", "SP_WEIGHTS_DIR", "TT_WEIGHTS_REVISION", "HF_HUB_CACHE", "TT_MESH_SHAPE"]
VARIABLES += ["TT_DEVICE_ID", "TT_FUSED_STAGES", "SP_DISPATCH", "NOTIFY_SOCKET", "LENSING_BACKEND", "LENSING_TTSIM"]


def is_sanitized(build):
    options = json.loads((Path(build) / "meson-info" / "intro-buildoptions.json").read_text())
    return next(o["value"] for o in options if o["name"] == "b_sanitize") not in ("none", [])


def cpu_seconds(pid):
    """Time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def clean_environment(**more):
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    environment["HF_HOME"] = "/nonexistent"
    environment.setdefault("TSAN_OPTIONS", "halt_on_error=0 exitcode=66")
    return {**environment, **more}


class Server:
    """`lensing serve` with its log. The process is killed by close() if it still runs."""

    def __init__(self, program, weights, *options, env=None, port=0, prefix=(), **popen):
        command = [*map(str, prefix), str(program), "serve", "--port", str(port)]
        command += ["--weights", str(weights)] if weights is not None else []
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*command, *map(str, options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=clean_environment(**(env or {})),
            **popen,
        )
        self.pid, self.port, self.lines = self.process.pid, None, []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.decode(errors="replace").rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def log(self):
        with self.changed:
            return "\n".join(line for line in self.lines if line is not None)

    def wait_for_line(self, pattern, limit=TIME_LIMIT):
        """The match of the first line that the pattern is found in."""
        end = time.monotonic() + limit
        with self.changed:
            while True:
                for line in self.lines:
                    found = re.search(pattern, line) if line is not None else None
                    if found:
                        return found
                if self.lines[-1:] == [None] or time.monotonic() > end:
                    text = "\n".join(map(str, self.lines))
                    raise AssertionError(f"no line with {pattern!r}:\n{text}")
                self.changed.wait(0.5)

    def wait_until_ready(self):
        self.port = int(self.wait_for_line(r"Uvicorn running on http://\S+:(\d+) ").group(1))
        return self

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, limit=TIME_LIMIT):
        """Exit status."""
        code = self.process.wait(limit)
        self.reader.join(limit)
        return code

    def stop(self):
        self.signal()
        return self.wait()

    def close(self):
        if self.process.poll() is None:
            self.signal()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        log = self.log()
        for word in ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:"):
            assert word not in log, log

    def __enter__(self):
        return self.wait_until_ready()

    def __exit__(self, *_):
        self.close()

    # ---- What the kernel says about the process

    def status(self, name):
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1))

    def rss(self):
        """Kilobytes of memory."""
        return self.status("VmRSS")

    def threads(self):
        return self.status("Threads")

    def switches(self):
        """How often its threads have slept or been interrupted."""
        texts = [path.read_text() for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/status")]
        return sum(int(count) for text in texts for count in re.findall(r"ctxt_switches:\s+(\d+)", text))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def http_library(self):
        """Version of the libmicrohttpd that it runs with, such as (1, 0, 1)."""
        maps = Path(f"/proc/{self.pid}/maps").read_text()
        version = ctypes.CDLL(re.search(r"/\S*/libmicrohttpd\.so\S*", maps).group()).MHD_get_version
        version.restype = ctypes.c_char_p
        return tuple(map(int, version().decode().split(".")))

    # ---- Requests

    def connect(self, limit=TIME_LIMIT):
        return Connection(self.port, limit)

    def request(self, method, target, body=None, **headers):
        with self.connect() as connection:
            connection.send(message(method, target, body, **headers))
            return connection.answer(method)

    def get(self, target, **headers):
        return self.request("GET", target, **headers)

    def post(self, target, body, **headers):
        return self.request("POST", target, body, **headers)

    def raw(self, data, method="GET"):
        """Sends bytes as they are; the first answer, None if the server only closed the connection."""
        with self.connect() as connection:
            connection.send(data)
            return connection.answer(method)

    def metrics(self):
        return parse_metrics(self.get("/metrics").text)

    def metric(self, name, **labels):
        return self.metrics()[1].get((name, tuple(sorted(labels.items()))), 0.0)

    def wait_for_metric(self, name, value, limit=TIME_LIMIT, **labels):
        end = time.monotonic() + limit
        while (seen := self.metric(name, **labels)) != value:
            assert time.monotonic() < end, f"{name} is {seen}, not {value}"
            time.sleep(0.05)


def message(method, target, body=None, **headers):
    """A request; header names are written with _ for -."""
    lines = [f"{method} {target} HTTP/1.1", "Host: test"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None and "Transfer_Encoding" not in headers and "Content_Length" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin1") + (body or b"")


class Answer:
    def __init__(self, status, headers, body, head):
        self.status, self.headers, self.body, self.head = status, headers, body, head

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:300]!r}>"


class Connection:
    def __init__(self, port, limit=TIME_LIMIT):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=limit)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """A server may answer and close before it read all."""
        try:
            self.socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            pass

    def more(self):
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.buffer += data
        return len(data) > 0

    def answer(self, method="GET"):
        """The next answer that is not 100 Continue; None at the end of the connection."""
        while True:
            while b"\r\n\r\n" not in self.buffer:
                if not self.more():
                    assert self.buffer == b"", self.buffer
                    return None
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 100"):
                break
        lines = head.decode("latin1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            assert self.more(), "the connection ended within a body"
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(int(lines[0].split()[1]), headers, body, head)

    def rest(self):
        """Everything up to the end of the connection, which must come."""
        while self.more():
            pass
        return self.buffer

    def is_closed(self, limit=TIME_LIMIT):
        """Waits for the end of the connection; nothing else may come."""
        self.socket.settimeout(limit)
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False


def picture(seed=1, width=96, height=72):
    """An RGB picture with corners."""
    random = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 128, np.uint8)
    for _ in range(30):
        x, y = random.integers(0, width), random.integers(0, height)
        pixels[y : y + random.integers(4, 30), x : x + random.integers(4, 30)] = random.integers(0, 256, 3)
    return Image.fromarray(pixels)


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def json_body(data, **fields):
    return json.dumps({"image": base64.b64encode(data).decode(), **fields}).encode()


def without_timing(body):
    """The bytes of an answer with its times masked."""
    return re.sub(rb'"timing_ms":\{[^}]*\}', b'"timing_ms":{}', body)


def parse_metrics(text):
    """Checks the text format of Prometheus. Returns ({name: type}, {(name, ((label, value), ...)): number})."""
    types, helps, samples = {}, set(), {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            assert name not in helps and words, line
            helps.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name in helps and name not in types and kind in ("counter", "gauge", "histogram"), line
            types[name] = kind
        else:
            found = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
            assert found, line
            labels = tuple(sorted(re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\.)*)"(?:,|$)', found[2] or "")))
            assert ",".join(f'{k}="{v}"' for k, v in labels).__len__() == len(found[2] or ""), line
            family = re.sub(r"_(bucket|sum|count)$", "", found[1])
            assert family in types or found[1] in types, line
            assert types.get(family) == "histogram" or types[found[1]] != "counter" or found[1].endswith("_total"), line
            assert (found[1], labels) not in samples, line
            samples[found[1], labels] = float(found[3])
    return types, samples
