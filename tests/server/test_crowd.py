# SPDX-License-Identifier: Apache-2.0
"""Many slow clients at a time: each is closed by its deadline, and an ordinary client is served as if it were alone.

LENSING_CROWD is the number of slow clients. If it is not set, 60 of them stay for 7 seconds, with deadlines as short.
With it they stay for a minute, with the deadlines that the server has by default, and the times must be those of an idle
machine: run that alone."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from running import encoded, message, picture

CROWD = int(os.environ.get("LENSING_CROWD", 0))
COUNT, SECONDS = (CROWD, 60) if CROWD else (60, 7)
HEADER, BODY, WRITE = (10, 30, 30) if CROWD else (1, 2, 2)
LATE = 2 if CROWD else 4  # seconds that a deadline may be missed by on a loaded machine
PICTURE = message("POST", "/predict_raw", encoded(picture()))


def ask(connection, is_over):
    """Milliseconds of requests, one after the other, until `is_over(count)`."""
    times = []
    while not is_over(len(times)):
        began = time.monotonic()
        connection.send(PICTURE)
        answer = connection.answer()
        assert answer is not None and answer.status == 200, answer
        times.append((time.monotonic() - began) * 1e3)
    return sorted(times)


def percentile(times, percent):
    return times[min(len(times) - 1, len(times) * percent // 100)]


def test_crowd(start):
    options = [] if CROWD else ["--header-timeout", HEADER, "--body-timeout", BODY, "--write-timeout", WRITE]
    server = start(*options)
    with server.connect() as ordinary:
        ask(ordinary, lambda count: count >= 20)
        idle = ask(ordinary, lambda count: count >= (400 if CROWD else 30))
        memory = server.rss()
        command = [sys.executable, Path(__file__).with_name("crowd.py"), server.port, COUNT, SECONDS]
        crowd = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
        try:
            assert crowd.stdout.readline() == "ready\n"
            assert server.metric("lensing_connections") >= COUNT * 0.9
            crowded = ask(ordinary, lambda count: crowd.poll() is not None and count >= 30)
            report = json.loads(crowd.stdout.read())
        finally:
            crowd.kill()
            crowd.wait()
            crowd.stdout.close()
        server.wait_for_metric("lensing_connections", 2)
        grown = server.rss() - memory
    print(f"\n{COUNT} slow clients for {SECONDS} s, memory of the server grew by {grown} kB")
    for name, times in (("alone", idle), ("with them", crowded)):
        print(f"{name}: {len(times)} requests, median {percentile(times, 50):.1f} ms, p99 {percentile(times, 99):.1f} ms")
    for kind, deadline in (("header", HEADER), ("body", BODY), ("read", WRITE)):
        seen = report[kind]
        print(f"{kind}: {seen['closed']} closed after {seen['soonest']:.1f} to {seen['latest']:.1f} s")
        assert seen["closed"] > 0, report
        assert seen["latest"] < deadline + LATE and seen["oldest_open"] < deadline + LATE, report
        assert kind == "read" or seen["soonest"] > deadline * 0.8, report
    if CROWD:
        assert percentile(crowded, 99) < 2 * percentile(idle, 99)
    else:
        assert percentile(crowded, 50) < 3 * percentile(idle, 50) + 200
