# SPDX-License-Identifier: Apache-2.0
"""Servers as processes of their own, for compare_server.py."""
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import load

HERE = Path(__file__).resolve().parent
START_LIMIT_MS = 120e3
SPENT = re.compile(rb'"timing_ms":\{[^}]*"total":([0-9.]+)')
STARTED = "Application startup complete"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A running server on a free port of 127.0.0.1, with the milliseconds from the start of its process until it logged
    that it had started and until it answered /health. Left with close().

    The log goes to a file, so that nobody is woken by its lines while requests are timed."""

    def __init__(self, command, environment=None):
        self.port = free_port()
        self.target = load.Target(f"http://127.0.0.1:{self.port}")
        self.logged_ms = self.healthy_ms = None
        self.log = tempfile.TemporaryFile()
        began = time.perf_counter()
        self.process = subprocess.Popen([*map(str, command), "--port", str(self.port)], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT,
                                        env={**os.environ, **(environment or {})})
        try:
            self.wait_for_start(began)
        except BaseException:
            self.close()
            raise

    def wait_for_start(self, began):
        while self.logged_ms is None or self.healthy_ms is None:
            now = (time.perf_counter() - began) * 1e3
            if self.logged_ms is None and STARTED in self.log_text():
                self.logged_ms = now
            if self.healthy_ms is None and self.is_healthy():
                self.healthy_ms = (time.perf_counter() - began) * 1e3
            if self.process.poll() is not None or now > START_LIMIT_MS:
                raise SystemExit(f"{self.process.args[0]} did not start:\n{self.log_text()}")
            time.sleep(0.001)

    def log_text(self):
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def is_healthy(self):
        try:
            with Exchange(self.target, self.target.message("GET", "/health")) as health:
                return health.run()[1] == 200
        except ConnectionError:
            return False

    def memory_mb(self, name):
        """VmRSS now, or VmHWM, the most so far (Linux)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) * 1024 / 1e6

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Exchange:
    """One request, sent again for every run() over one connection that is opened at the first and, when the server has
    closed it, again."""

    def __init__(self, target, message):
        self.target, self.message, self.socket = target, message, None
        self.buffer, self.view = bytearray(1 << 16), None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.socket = None

    def connect(self):
        self.close()
        self.socket = socket.create_connection((self.target.host, self.target.port), timeout=load.MAX_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def is_stale(self):
        """Whether the server has closed the connection: nothing else can come before a request."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def run(self):
        """[milliseconds, status, those of the milliseconds that the answer says were spent on the picture]"""
        if self.socket is None or self.is_stale():
            self.connect()
        start = time.perf_counter()
        self.socket.sendall(self.message)
        status, begin, end = self.receive()
        took = (time.perf_counter() - start) * 1e3
        spent = SPENT.search(self.buffer, begin, end)
        return [took, status, float(spent[1]) if spent else 0.0]

    def receive(self):
        """The status and where in the buffer the body is."""
        filled, begin, total, status = 0, 0, None, 0
        while total is None or filled < total:
            if filled == len(self.buffer):
                self.buffer.extend(bytes(filled))
            with memoryview(self.buffer) as view:
                count = self.socket.recv_into(view[filled:])
            if count == 0:
                raise ConnectionError("closed without an answer")
            filled += count
            if total is None and (begin := self.buffer.find(b"\r\n\r\n", 0, filled) + 4) >= 4:
                status, length = load.read_head(self.buffer[:begin])
                total = begin + length
                if total > len(self.buffer):
                    self.buffer.extend(bytes(total - len(self.buffer)))
        return status, begin, total


def lensing(program, weights):
    return Server([program, "serve", "--weights", weights])


def peer(model):
    """The server in Python; its program is the interpreter that runs this."""
    return Server([sys.executable, "-m", "uvicorn", "--app-dir", HERE / "peer_server", "app:app", "--loop", "uvloop",
                   "--http", "httptools"], {"MODEL": str(model)})
