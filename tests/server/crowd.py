# SPDX-License-Identifier: Apache-2.0
"""Clients that are as slow as they can be, many at a time, for a bounded time, on 127.0.0.1 only.

    python crowd.py PORT CONNECTIONS SECONDS

45 % send a header without an end, 45 % a body, one byte a second; 10 % read answers at 128 bytes a second. Whoever is
closed by the server comes back at once. Prints "ready" when all are connected the first time, and at the end a line of
JSON: for each kind how many connections the server closed, after how many seconds at the soonest and at the latest, and
the age of the oldest one that was still open.
"""
import asyncio
import json
import resource
import socket
import sys
import time

EVERY = 1  # second between two bytes
HEADER = b"GET /health HTTP/1.1\r\nHost: test\r\nX-Slow: "
BODY = b"POST /predict_raw HTTP/1.1\r\nHost: test\r\nContent-Length: 134217728\r\n\r\n"
PAGE = b"GET /openapi.json HTTP/1.1\r\nHost: test\r\n\r\n"
PAGES = 800  # more bytes than the system keeps for a client that does not read


def is_established(connection):
    """Whether the other side still holds the connection, however much is left to read."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01"


class Crowd:
    def __init__(self, port, seconds):
        self.port, self.end = port, time.monotonic() + seconds
        self.connected = 0
        self.ages = {kind: [] for kind in ("header", "body", "read")}
        self.oldest = dict.fromkeys(self.ages, 0.0)

    async def connect(self, kind):
        connection = socket.socket()
        connection.setblocking(False)
        if kind == "read":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        return connection

    async def send_slowly(self, connection, start):
        """Until the server closes or the time is over."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, start)
        while time.monotonic() < self.end:
            try:
                if await asyncio.wait_for(loop.sock_recv(connection, 4096), EVERY) == b"":
                    return
            except asyncio.TimeoutError:
                await loop.sock_sendall(connection, b"a")

    async def read_slowly(self, connection):
        loop = asyncio.get_running_loop()
        sending = asyncio.ensure_future(loop.sock_sendall(connection, PAGE * PAGES))
        try:
            while time.monotonic() < self.end:
                if await loop.sock_recv(connection, 128) == b"" or not is_established(connection):
                    return
                await asyncio.sleep(EVERY)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def be_slow(self, kind):
        first = True
        while time.monotonic() < self.end:
            connection = await self.connect(kind)
            began = time.monotonic()
            self.connected += first
            first = False
            try:
                if kind == "read":
                    await self.read_slowly(connection)
                else:
                    await self.send_slowly(connection, HEADER if kind == "header" else BODY)
            except OSError:
                pass
            finally:
                connection.close()
            age = time.monotonic() - began
            if time.monotonic() < self.end:
                self.ages[kind].append(age)
            else:
                self.oldest[kind] = max(self.oldest[kind], age)

    async def tell_when_ready(self, count):
        while self.connected < count:
            await asyncio.sleep(0.05)
        print("ready", flush=True)

    async def run(self, count):
        kinds = (["header", "body"] * 4 + ["header", "read"] + ["body", "header"] * 4 + ["body", "read"]) * count
        await asyncio.gather(self.tell_when_ready(count), *(self.be_slow(kind) for kind in kinds[:count]))

    def report(self):
        return {
            kind: {"closed": len(ages), "soonest": min(ages, default=0), "latest": max(ages, default=0),
                   "oldest_open": self.oldest[kind]}
            for kind, ages in self.ages.items()
        }


def main():
    port, count, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 100, hard) if hard > 0 else count + 100, hard))
    crowd = Crowd(port, seconds)
    asyncio.run(crowd.run(count))
    print(json.dumps(crowd.report()))


if __name__ == "__main__":
    main()
