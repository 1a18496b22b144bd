# SPDX-License-Identifier: Apache-2.0
"""Signals and terminals: nothing is left behind, and a person sees progress and no binary."""
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cli.tool import names_in, one_error

# ---- Signals ---------------------------------------------------------------------------------------------------------


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def catches(process, number):
    """Whether the program has a handler for the signal by now."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"^SigCgt:\s+(\w+)", status, re.M).group(1), 16) >> (number - 1) & 1 == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("target", ["o.json", "o.h5"])
def test_interrupted_in_the_middle(tool, photo, number, target):
    for i in range(200):
        (tool.folder / f"{i}.png").symlink_to(photo)
    before = names_in(tool.folder)
    process = tool.popen("detect", ".", "-w", tool.weights, "-o", target)
    wait_until(lambda: any(".tmp" in name for name in names_in(tool.folder)))
    time.sleep(0.2)
    process.send_signal(number)
    assert process.wait(timeout=60) == 130
    assert process.stdout.read() == process.stderr.read() == b""
    assert names_in(tool.folder) == before


def test_interrupted_while_reading_standard_input(tool):
    process = tool.popen("detect", "-", "-w", tool.weights, stdin=subprocess.PIPE)
    wait_until(lambda: catches(process, signal.SIGINT))
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    assert process.stdout.read() == b"" == process.stderr.read()


def test_interrupted_while_nobody_reads(tool, photo):
    """Standard output is a full pipe: the write must not hold the program."""
    process = tool.popen("detect", *[photo] * 50, "--descriptors", "-w", tool.weights)
    select.select([process.stdout], [], [], 60)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130


def test_missing_weights_do_not_wait_for_standard_input(tool):
    process = tool.popen("detect", "-", "-w", "missing.safetensors", stdin=subprocess.PIPE)
    assert process.wait(timeout=30) == 3


# ---- Terminals -------------------------------------------------------------------------------------------------------


def run_on_terminal(tool, arguments, streams):
    """Runs with the named streams on a terminal; the answer holds what the terminal got and the other stream."""
    controller, terminal = pty.openpty()
    options = {name: terminal for name in streams}
    process = tool.popen(*arguments, **options)
    os.close(terminal)
    shown = b""
    while True:
        try:
            data = os.read(controller, 65536)
        except OSError:
            data = b""
        if not data:
            break
        shown += data
    out, err = process.communicate(timeout=300)
    os.close(controller)
    return process.returncode, shown, out, err


def test_progress_bar(tool, photos):
    arguments = ["detect", *photos, "missing.png", "-w", tool.weights, "-o", "o.json"]
    code, shown, out, _ = run_on_terminal(tool, arguments, ["stderr"])
    assert code == 1 and out == b""
    assert b"0/4" in shown and b"\x1b[K" in shown
    last = shown.split(b"\x1b[K")[-1]
    assert last == b"" or last.startswith(b"lensing: missing.png"), shown
    code, shown, _, _ = run_on_terminal(tool, [*arguments, "--quiet"], ["stderr"])
    assert code == 1 and shown == b"lensing: missing.png: cannot open: No such file or directory\r\n"
    code, shown, _, _ = run_on_terminal(tool, ["detect", "a.png", "-w", tool.weights, "-o", "o.json"], ["stderr"])
    assert (code, shown) == (0, b"")


def test_no_progress_bar_between_lines_on_a_terminal(tool, photos):
    arguments = ["detect", *photos, "-w", tool.weights]
    code, shown, _, _ = run_on_terminal(tool, arguments, ["stdout", "stderr"])
    assert code == 0 and b"\x1b" not in shown and shown.count(b"\n") == 3


def test_no_binary_on_a_terminal(tool, photo):
    arguments = ["detect", photo, "--format", "npz", "-w", tool.weights]
    code, shown, _, err = run_on_terminal(tool, arguments, ["stdout"])
    assert (code, shown) == (2, b"")
    assert one_error(err.decode()) == "npz is not for a terminal; name a file with -o FILE"


def test_standard_input_is_a_terminal(tool):
    code, shown, out, err = run_on_terminal(tool, ["detect", "-", "-w", tool.weights], ["stdin"])
    assert (code, out) == (2, b"") and "that is a terminal" in one_error(err.decode())
