# SPDX-License-Identifier: Apache-2.0
"""bench/load.py: its percentiles against NumPy, and what it says of a server whose answers are known."""
import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import load  # noqa: E402

TIMING = b'"timing_ms":{"total":%d}'


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101, 1000])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_percentile(count, share):
    values = np.sort(np.random.default_rng(count).random(count))
    assert load.percentile(values.tolist(), share) == np.quantile(values, share, method="inverted_cdf")


def test_url():
    target = load.Target("http://127.0.0.1:8000/")
    assert (target.host, target.port) == ("127.0.0.1", 8000)
    for wrong in ("127.0.0.1:8000", "https://127.0.0.1", "http://127.0.0.1/predict"):
        with pytest.raises(ValueError, match="not of the form"):
            load.Target(wrong)


class Script:
    """A server that reads requests and gives the answers of a function of their number: status, body, seconds of work;
    None closes the connection."""

    def __init__(self, answer):
        self.answer, self.count, self.target = answer, 0, None

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(load.read_head(b"HTTP/1.1 200 " + head)[1])
                self.count += 1
                status, body, seconds = self.answer(self.count) or (0, b"", 0)
                await asyncio.sleep(seconds)
                if status == 0:
                    break
                # In two parts, cut inside the header.
                message = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body
                writer.write(message[:20])
                await asyncio.sleep(0.001)
                writer.write(message[20:])
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    def measure(self, **options):
        """load.measure() with one request of 300 kB."""

        async def run():
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
            self.target = load.Target(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            figures = await load.measure(self.target, [self.target.predict_raw(bytes(300000), nms_radius=4)], **options)
            server.close()
            return figures

        return asyncio.run(run())


def test_closed_loop():
    """Two clients, a server that takes 20 ms: at most 25 answers each in half a second, all of them counted."""
    script = Script(lambda count: (200, bytes(200000), 0.02))
    figures = script.measure(seconds=0.5, clients=2)
    latency = figures["latency_ms"][200]
    assert 4 <= latency["count"] == script.count <= 52 and figures["errors"] == {}
    assert 20 <= latency["p50"] <= latency["p99"] <= latency["max"] <= figures["seconds"] * 1e3
    # Half of the answers took at least the median, and two clients together have twice the time.
    assert latency["count"] / 2 * latency["p50"] <= 2 * figures["seconds"] * 1e3
    assert figures["throughput"] == pytest.approx(script.count / figures["seconds"])


def test_open_loop_counts_each_status_apart():
    """Every third is refused at once; latency of the others counts from the time they were due."""
    script = Script(lambda count: (503, b"busy", 0) if count % 3 == 0 else (200, b"{}", 0.1))
    figures = script.measure(seconds=0.5, rate=60)
    assert {status: row["count"] for status, row in figures["latency_ms"].items()} == {200: 20, 503: 10}
    assert figures["latency_ms"][200]["p50"] >= 100 and figures["lag_ms"]["count"] == 30
    assert figures["latency_ms"][503]["p50"] < figures["latency_ms"][200]["p50"]


def test_errors_are_counted_and_the_end_comes():
    """A connection closed without an answer, and an answer that does not come in time."""
    figures = Script(lambda count: None).measure(seconds=0.3)
    assert figures["latency_ms"] == {} and figures["errors"]["ConnectionError"] >= 1
    figures = Script(lambda count: (200, b"", 5)).measure(seconds=0.1, timeout=0.2)
    assert sum(figures["errors"].values()) == 1 and figures["latency_ms"] == {}


def test_check_finds_an_answer_that_differs():
    """Only the times may."""
    script = Script(lambda count: (200, b'{"keypoints":[%d],' % (count == 4) + TIMING % count + b"}", 0))
    figures = script.measure(seconds=0.5, check=True)
    assert script.count > 4 and figures["unequal"] == 1
