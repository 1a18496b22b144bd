# SPDX-License-Identifier: Apache-2.0
"""The n-th allocation, thread, mmap(), accept() or write() fails, for n = 1, 2, 3 ... until none does any more: each time
the program gives a clear error or the right result, and leaves nothing behind.

In requests a sample of n is tried by default; with LENSING_LONG set, every one."""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fault_control import ACCEPT, FOREVER, MEMORY, MMAP, THREAD, WRITE, Faults  # noqa: E402
from running import LONG, TIME_LIMIT, Server, clean_environment, encoded, json_body, message, picture, without_timing  # noqa: E402

SAMPLE = 12  # allocations of each request that are made to fail by default
JPEG = encoded(picture(), "JPEG")


@pytest.fixture
def faults(build_dir, tmp_path):
    library = build_dir / "tests" / "faults" / "fail_nth.so"
    if not library.exists():
        pytest.skip("fail_nth.so is built with glibc and without sanitizers only")
    return Faults(library.resolve(), tmp_path / "faults")


def numbers(count):
    """Which of `count` calls to fail."""
    step = 1 if LONG else max(1, (count - 1) // SAMPLE)
    return range(1, count + 1, step)


def count_calls(faults, kind, work):
    """How many calls of the kind there are in `work()`; none fails."""
    faults.arm(kind, FOREVER)
    work()
    return FOREVER - (faults.disarm(), faults.get("left"))[1]


# ---- The program --------------------------------------------------------------------------------


class Command:
    """`lensing detect` of one picture into a file."""

    def __init__(self, program, weights, faults, folder):
        (folder / "photo.jpg").write_bytes(JPEG)
        self.folder, self.faults = folder, faults
        self.command = [str(program), "detect", "photo.jpg", "--weights", str(weights), "--threads", "2", "-o", "out.json"]
        self.environment = clean_environment(**faults.environment)

    def run(self):
        """Exit code, standard error, the file without its times or None, and the blocks that were not freed."""
        self.faults.set("blocks", 0)
        result = subprocess.run(self.command, cwd=self.folder, env=self.environment, capture_output=True, timeout=120)
        out = self.folder / "out.json"
        written = without_timing(out.read_bytes()) if out.exists() else None
        out.unlink(missing_ok=True)
        assert sorted(p.name for p in self.folder.iterdir()) == ["faults", "photo.jpg"], "a temporary file is left"
        assert result.stdout == b""
        return result.returncode, result.stderr.decode(), written, self.faults.get("blocks")


@pytest.mark.parametrize("kind, codes, words", [
    (MEMORY, {1, 3, 4, 5}, "memory|cannot start a? ?thread"),
    (THREAD, {3, 5}, "cannot start a? ?thread"),
    (MMAP, {3, 5}, "memory"),
    (WRITE, {4}, "No space left on device"),
])  # fmt: skip
def test_command(program, weights, faults, tmp_path, kind, codes, words):
    command = Command(program, weights, faults, tmp_path)
    expected = command.run()
    assert expected[0] == 0 and expected[1] == "" and expected[2]
    count = count_calls(faults, kind, command.run)
    assert count > 0 or kind in (THREAD, MMAP)
    refused = 0
    for n in range(1, count + 1):
        faults.arm(kind, n)
        code, err, written, blocks = command.run()
        faults.disarm()
        assert blocks <= expected[3], (n, code, err, blocks, expected[3])
        if code == 0:
            assert written == expected[2] and err == "", (n, err)
            continue
        refused += 1
        assert code in codes and written is None, (n, code, err, written)
        assert len(err.splitlines()) == 1 and re.search(words, err), (n, code, err)
    print(f"\n{count} calls made to fail, {refused} of them an error of the program")


# ---- The server ---------------------------------------------------------------------------------

REQUESTS = {
    "JSON": message("POST", "/predict", json_body(JPEG), Content_Type="application/json"),
    "PNG": message("POST", "/predict_raw?return_descriptors=false", encoded(picture())),
    "plane": message("POST", "/predict_plane?height=50&width=40&max_keypoints=9", bytes(range(200)) * 10),
    "errors": message("POST", "/predict", b'{"max_keypoints":"a","nms_radius":99}', Content_Type="application/json"),
    "bad picture": message("POST", "/predict_raw", JPEG[:500]),
    "info": message("GET", "/info"),
    "metrics": message("GET", "/metrics"),
    "redirect": message("GET", "/info/"),
}


def settled_blocks(server, faults, limit=None):
    """Blocks once all connections are cleaned up; waits until there are at most `limit`."""
    end = time.monotonic() + 20
    blocks = faults.get("blocks")
    while time.monotonic() < end:
        time.sleep(0.02)
        before, blocks = blocks, faults.get("blocks")
        if blocks == before and (limit is None or blocks <= limit):
            break
    return blocks


def masked(answer):
    """What must be the same in each answer."""
    body = re.sub(rb"(?m)^lensing_.*\n", b"", without_timing(answer.body))
    return answer.status, body


@pytest.fixture
def faulty_server(program, weights, faults):
    with Server(program, weights, "--threads", 2, env=faults.environment) as server:
        for _ in range(3):  # what each of the three workers keeps
            for data in REQUESTS.values():
                server.raw(data)
        yield server


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_without_memory(faulty_server, faults, name):
    data = REQUESTS[name]
    expected = masked(faulty_server.raw(data))
    assert expected[0] in (200, 307, 400)
    count = count_calls(faults, MEMORY, lambda: faulty_server.raw(data))
    assert count > 3
    blocks, seen = settled_blocks(faulty_server, faults), {}
    for n in numbers(count):
        faults.arm(MEMORY, n)
        answer = faulty_server.raw(data)
        failed = faults.disarm()
        status = answer.status if answer is not None else None
        seen[status] = seen.get(status, 0) + 1
        if failed == 0 or status == expected[0]:
            assert masked(answer) == expected, n
        else:
            assert status in (None, 500, 503), (n, answer)
            assert status is None or "memory" in answer.json["detail"] or status == 503, (n, answer)
        left = settled_blocks(faulty_server, faults, blocks)
        assert left <= blocks, f"allocation {n}: {left - blocks} blocks were not freed, answer {answer}"
    print(f"\n{count} allocations, answers {seen}")
    assert masked(faulty_server.raw(data)) == expected
    assert faulty_server.stop() == 0


def test_no_memory_for_a_while(faulty_server, faults):
    """Nothing can be allocated for half a second; then all is as before."""
    expected = {name: masked(faulty_server.raw(data)) for name, data in REQUESTS.items()}
    blocks = settled_blocks(faulty_server, faults)
    for name, data in REQUESTS.items():
        faults.arm(MEMORY, 1, FOREVER)
        with faulty_server.connect() as connection:
            connection.send(data)
            time.sleep(0.1)
        faults.disarm()
    for name, data in REQUESTS.items():
        assert masked(faulty_server.raw(data)) == expected[name], name
    assert settled_blocks(faulty_server, faults, blocks) <= blocks
    assert faulty_server.stop() == 0


def test_accept_fails(faulty_server, faults):
    """The client waits, or is turned away, and the next one is served; the server does not spin meanwhile."""
    for repeat in (1, 1000):
        faults.arm(ACCEPT, 1, repeat)
        with faulty_server.connect(5) as connection:
            connection.send(REQUESTS["info"])
            end = time.monotonic() + TIME_LIMIT
            while faults.get("failed") == 0:
                assert time.monotonic() < end
                time.sleep(0.02)
            time.sleep(0.2)
            failed = faults.disarm()
        assert faulty_server.raw(REQUESTS["info"]).status == 200
        print(f"\naccept() failed {failed} times")
    assert faulty_server.stop() == 0


def test_mmap_fails_in_requests(faulty_server, faults):
    for name, data in REQUESTS.items():
        expected = masked(faulty_server.raw(data))
        count = count_calls(faults, MMAP, lambda: faulty_server.raw(data))
        for n in range(1, count + 1):
            faults.arm(MMAP, n)
            answer = faulty_server.raw(data)
            faults.disarm()
            assert answer is None or answer.status in (500, 503) or masked(answer) == expected, (name, n, answer)
    assert faulty_server.stop() == 0


@pytest.mark.parametrize("kind", [MEMORY, THREAD, MMAP])
def test_start_fails(program, weights, faults, kind):
    """The start ends with one line of error and code 3, or the server works."""

    def start():
        server = Server(program, weights, "--threads", 2, env=faults.environment)
        try:
            server.wait_for_line("Uvicorn running|ERROR")
            server.signal()
            return server.wait(), server.log()
        finally:
            server.close()

    count = count_calls(faults, kind, start)
    assert count > 0 or kind == MMAP
    codes = {}
    for n in range(1, count + 1):
        faults.arm(kind, n)
        code, log = start()
        faults.disarm()
        codes[code] = codes.get(code, 0) + 1
        errors = [line for line in log.splitlines() if not line.startswith("INFO:")]
        if code == 0:
            assert errors == [] and "Finished server process" in log, (n, log)
        else:
            assert code in (2, 3) and errors and "Uvicorn running" not in log, (n, code, log)
            assert errors[0].startswith(("ERROR:", "lensing: ")), (n, log)
            assert re.search("memory|cannot start|did not start", log), (n, log)
    print(f"\n{count} calls, exit codes {codes}")
