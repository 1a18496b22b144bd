# SPDX-License-Identifier: Apache-2.0
"""Measures `lensing serve` against the same service in Python (peer_server/: FastAPI, uvicorn, ONNX Runtime).

    python bench/compare_server.py --build build --weights model.safetensors [--photo FILE]... [--json FILE]

 agreement   whether both find the same keypoints; without that no time means anything
 rounds      start-up, latency at 1 and at 8 clients, throughput, memory; the servers take turns
 overload    requests at 4 times the rate that a server can answer: what is refused, how fast, what becomes of the rest
 overhead    a request, one at a time, over the engine's own detect of the same bytes in another process, and over the
             time that its own answer says was spent on the picture, which is steadier
 sustained   64 clients without a pause, against the engine alone, and against the service time: what a request takes
             when it is the only one

The client runs on the same machine over the loopback interface, so its work is in every figure; a /health request is
measured beside the others to show how much that is at least. A client elsewhere would not wait for a CPU until the server
leaves one; so this one asks for real-time priority, which needs root or CAP_SYS_NICE, and says when it has none. Nothing
else should run at the same time. Linux only.
"""
import argparse
import asyncio
import base64
import io
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

import load
import onnx_model
import servers
from compare import HERE, Worker, alternate, describe_machine, photo_like, spread

OVERLOAD = 4          # times the capacity
# Requests that a server has at most: 64 with the one in the network, or 64 that wait and those of three threads.
PLACES = {"lensing": 64, "python": 67}
NORMAL = 1.2          # a latency is normal again up to so many times the one without load


def take_priority():
    """For this process, not for those that it starts."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        print("no real-time priority: times include how long the client waits for a CPU")


def median_line(rows, key):
    return statistics.median(row[key] for row in rows)


class Setup:
    """What all parts need: the options, the picture, and how to start each server."""

    def __init__(self, options, folder):
        self.options, self.weights = options, options.weights
        if not options.photo:
            options.photo = [folder / "1600x900.jpg"]
            photo_like(1600, 900).save(options.photo[0], quality=90)
        self.photo = options.photo[0]
        self.picture = self.photo.read_bytes()
        model = folder / "superpoint.onnx"
        model.write_bytes(onnx_model.build(options.weights))
        self.start = {"lensing": lambda: servers.lensing(options.build / "lensing", options.weights),
                      "python": lambda: servers.peer(model)}

    def engine(self):
        library = self.options.build / "src" / "liblensing.so"
        return Worker(sys.executable, HERE / "worker.py", library, self.weights, 0, "detect", self.photo)


# ---- Agreement


def features(answer):
    """Score and descriptor of each keypoint."""
    file = io.BytesIO(base64.b64decode(answer["descriptors"]["data"]))
    descriptors = np.load(file)["descriptors"].astype(np.float64)
    return {tuple(point): row for point, row in zip(answer["keypoints"], zip(answer["scores"], descriptors))}


def same_features(ours, theirs):
    """Share of the keypoints that both have, and of these the largest difference of scores and of descriptor values."""
    tables = [features(answer) for answer in (ours, theirs)]
    common = tables[0].keys() & tables[1].keys()
    pairs = [(tables[0][point], tables[1][point]) for point in common]
    return (len(common) / max(1, *map(len, tables)), max((abs(a[0] - b[0]) for a, b in pairs), default=0.0),
            max((float(np.abs(a[1] - b[1]).max()) for a, b in pairs), default=0.0))


def check_agreement(setup):
    figures = {}
    with setup.start["lensing"]() as ours, setup.start["python"]() as theirs:
        for photo in setup.options.photo:
            answers = []
            for server in (ours, theirs):
                request = [server.target.predict_raw(photo.read_bytes())]
                answers.append(json.loads(asyncio.run(load.serial_answers(server.target, request))[0]))
            share, scores, descriptors = same_features(*answers)
            print(f"agreement on {photo.name}: {answers[0]['num_keypoints']} and {answers[1]['num_keypoints']} keypoints, "
                  f"{share:.4f} in both; scores differ by {scores:.1e} at most, descriptors by {descriptors:.1e}")
            if list(answers[0]) != list(answers[1]) or share < 0.99 or scores > 1e-3 or descriptors > 2e-3:
                raise SystemExit(f"{photo}: the servers do not agree")
            figures[photo.name] = {"share": share, "score_difference": scores, "descriptor_difference": descriptors}
    return figures


# ---- Rounds


def closed_loop(server, picture, clients, seconds):
    request = [server.target.predict_raw(picture)]
    figures = asyncio.run(load.measure(server.target, request, seconds, clients, check=True))
    if figures["errors"] or figures["unequal"] or list(figures["latency_ms"]) != [200]:
        raise SystemExit(f"{clients} clients: {figures}")
    return figures


def measure_round(setup, name):
    with setup.start[name]() as server:
        one = closed_loop(server, setup.picture, 1, setup.options.seconds)
        eight = closed_loop(server, setup.picture, 8, setup.options.seconds)
        time.sleep(1)
        return {"healthy_ms": server.healthy_ms, "logged_ms": server.logged_ms,
                "latency_1_ms": one["latency_ms"][200]["p50"], "latency_1_p99_ms": one["latency_ms"][200]["p99"],
                "latency_8_ms": eight["latency_ms"][200]["p50"], "latency_8_p99_ms": eight["latency_ms"][200]["p99"],
                "throughput_1": one["throughput"], "throughput_8": eight["throughput"],
                "rss_mb": server.memory_mb("VmRSS"), "peak_rss_mb": server.memory_mb("VmHWM")}


ROWS = {"healthy_ms": "process start to /health", "logged_ms": f'process start to "{servers.STARTED}"',
        "latency_1_ms": "latency, 1 client, median", "latency_1_p99_ms": "latency, 1 client, 99 %",
        "latency_8_ms": "latency, 8 clients, median", "latency_8_p99_ms": "latency, 8 clients, 99 %",
        "throughput_1": "answers a second, 1 client", "throughput_8": "answers a second, 8 clients",
        "rss_mb": "memory after load", "peak_rss_mb": "peak memory"}


def unit(key):
    return next((u for u in ("ms", "mb") if key.endswith(u)), "/s").replace("mb", "MB")


def measure_rounds(setup):
    rounds = {name: [] for name in setup.start}
    for _ in range(setup.options.rounds):
        for name, rows in rounds.items():
            rows.append(measure_round(setup, name))
    figures = {}
    print(f"{'median of ' + str(setup.options.rounds) + ' rounds':50} {'Lensing':>12} {'Python':>12} {'ratio':>8}")
    for key, title in ROWS.items():
        ours, theirs = (median_line(rounds[name], key) for name in ("lensing", "python"))
        ratio = statistics.median(a[key] / b[key] for a, b in zip(rounds["lensing"], rounds["python"]))
        print(f"{title + ', ' + unit(key):50} {ours:12.1f} {theirs:12.1f} {ratio:8.3f}")
        figures[key] = {"lensing": ours, "python": theirs, "ratio": ratio}
    return {**figures, "rounds": rounds}


# ---- Overload


async def probe_after(target, request, end):
    """Sends one request after another from `end` on, until one is accepted; the milliseconds until that one was sent."""
    probe = load.Load(target, [request])
    try:
        while True:
            sent = time.perf_counter()
            status = await probe.send()
            if status == 200:
                return (sent - end) * 1e3
            if status != 503:
                raise SystemExit(f"after the overload a request is answered {status}: {dict(probe.errors)}")
            await asyncio.sleep(0.01)
    finally:
        probe.close()


async def wait_for_normal(target, request, normal_ms, began):
    """Milliseconds until a request was sent whose latency is that without load."""
    probe = load.Load(target, [request])
    try:
        while time.perf_counter() - began < 60:
            sent = time.perf_counter()
            await probe.send()
            if probe.latencies[200][-1:] and probe.latencies[200][-1] <= NORMAL * normal_ms:
                return (sent - began) * 1e3
        raise SystemExit("a minute after the overload requests are still slow")
    finally:
        probe.close()


async def run_overload(server, picture, rate, seconds, normal_ms):
    request = server.target.predict_raw(picture)
    expected = [load.around_timing((await load.serial_answers(server.target, [request]))[0])]
    storm = load.Load(server.target, [request], 120, expected)
    task = asyncio.ensure_future(storm.open_loop(rate, seconds))
    await asyncio.sleep(seconds)
    accepts = await probe_after(server.target, request, time.perf_counter())
    await task
    normal = await wait_for_normal(server.target, request, normal_ms, time.perf_counter())
    storm.close()
    return {**storm.summary(), "accepts_again_ms": accepts, "normal_again_ms": normal}


def measure_overload(setup):
    figures = {}
    for name, start in setup.start.items():
        with start() as server:
            normal = closed_loop(server, setup.picture, 1, setup.options.seconds)["latency_ms"][200]["p50"]
            capacity = closed_loop(server, setup.picture, 8, setup.options.seconds)["throughput"]
            storm = asyncio.run(run_overload(server, setup.picture, OVERLOAD * capacity, setup.options.overload_seconds,
                                             normal))
        accepted, refused = (storm["latency_ms"].get(status, {"count": 0}) for status in (200, 503))
        storm |= {"capacity": capacity, "refused_share": refused["count"] / max(1, refused["count"] + accepted["count"]),
                  "queue_times_service_ms": PLACES[name] / capacity * 1e3}
        print(f"overload, {name}: {OVERLOAD} x {capacity:.2f} a second for {setup.options.overload_seconds:.0f} s; "
              f"{storm['refused_share']:.1%} refused, errors {storm['errors'] or 'none'}, wrong answers {storm['unequal']}")
        if refused["count"]:
            print(f"  refused after {refused['p50']:.2f} ms (median), {refused['p99']:.2f} ms (99 %), "
                  f"{refused['max']:.2f} ms (longest); of that the client itself was late "
                  f"{storm['lag_ms']['p50']:.2f} / {storm['lag_ms']['p99']:.2f} / {storm['lag_ms']['max']:.2f} ms")
        print(f"  accepted: {accepted['p99']:.0f} ms (99 %), {PLACES[name]} places x service time "
              f"{storm['queue_times_service_ms']:.0f} ms, {storm['throughput']:.2f} a second")
        print(f"  accepts again {storm['accepts_again_ms']:.0f} ms after the end; latency is normal "
              f"{storm['normal_again_ms']:.0f} ms after the last answer")
        figures[name] = storm
    return figures


# ---- Overhead


def measure_overhead(setup):
    with setup.start["lensing"]() as server:
        target = server.target
        requests = {"/predict_raw": target.predict_raw(setup.picture), "/predict": target.predict(setup.picture),
                    "/predict_raw without descriptors": target.predict_raw(setup.picture, return_descriptors="false"),
                    "/health": target.message("GET", "/health")}
        exchanges = [servers.Exchange(target, message) for message in requests.values()]
        engine, *answers = alternate([setup.engine(), *exchanges], setup.options.overhead_rounds, 0.02)
    own = [value[0] for value in engine]
    print(f"engine alone: {spread(own)} ms for {setup.photo.name} ({len(setup.picture)} bytes)")
    figures = {"engine_ms": statistics.median(own)}
    for (name, message), values in zip(requests.items(), answers):
        if any(value[1] != 200 for value in values):
            raise SystemExit(f"{name}: not every answer is 200")
        took = [value[0] for value in values]
        figures[name] = {"ms": statistics.median(took), "request_bytes": len(message)}
        if name == "/health":
            print(f"{name}: {spread(took, 2)} ms")
            continue
        over_engine = [a - b for a, b in zip(took, own)]
        over_picture = [value[0] - value[2] for value in values]
        figures[name] |= {"over_engine_ms": statistics.median(over_engine),
                          "over_picture_ms": statistics.median(over_picture)}
        print(f"{name} ({len(message)} bytes): {spread(took)} ms, over the engine {spread(over_engine)} ms, over the time "
              f"for the picture {spread(over_picture, 2)} ms")
    return figures


# ---- Sustained


def engine_times(setup, runs=30):
    """Milliseconds of detects, back to back."""
    worker = setup.engine()
    times = [worker.run()[0] for _ in range(runs)]
    worker.close()
    return times


def service_time(server, picture, seconds=6):
    """Milliseconds that a request takes when it is the only one: the mean, as pauses of the machine count for all."""
    alone = closed_loop(server, picture, 1, seconds)
    return 1e3 / alone["throughput"]


def sustained_round(setup, clients):
    seconds = setup.options.sustained_seconds
    alone = engine_times(setup)
    with setup.start["lensing"]() as server:
        service = [service_time(server, setup.picture)]
        figures = closed_loop(server, setup.picture, clients, seconds)
        service.append(service_time(server, setup.picture))
    alone += engine_times(setup)
    engine, service = statistics.mean(alone), statistics.mean(service)
    latency = figures["latency_ms"][200]
    figures |= {"engine_ms": engine, "of_engine": figures["throughput"] * engine / 1e3, "service_ms": service,
                "p99_of_queue": latency["p99"] / (clients * service)}
    print(f"{clients} clients for {seconds:.0f} s: {latency['count']} answers, no error, none wrong; "
          f"{figures['throughput']:.2f} a second, {figures['of_engine']:.3f} of the engine alone; latency "
          f"{latency['p50']:.0f} ms (median), {latency['p99']:.0f} ms (99 %), {figures['p99_of_queue']:.3f} of "
          f"{clients} x service time {service:.1f} ms; engine alone {engine:.1f} ms")
    return figures


def measure_sustained(setup):
    rounds = [sustained_round(setup, clients=64) for _ in range(setup.options.sustained_rounds)]
    medians = {key: median_line(rounds, key) for key in ("of_engine", "p99_of_queue")}
    print(f"medians: {medians['of_engine']:.3f} of the engine alone, latency (99 %) {medians['p99_of_queue']:.3f} of "
          "64 x service time")
    return {"rounds": rounds} | medians


PARTS = {"agreement": check_agreement, "rounds": measure_rounds, "overload": measure_overload,
         "overhead": measure_overhead, "sustained": measure_sustained}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build", help="build folder")
    parser.add_argument("--weights", type=pathlib.Path, required=True, help="safetensors file")
    parser.add_argument("--photo", type=pathlib.Path, action="append", help="an image file; the first is the one that is "
                        "timed, agreement is checked on all (default: a made-up 1600x900 JPEG)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    parser.add_argument("--rounds", type=int, default=3, help="starts of each server (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=8, help="of each closed loop of a round (default %(default)s)")
    parser.add_argument("--overload-seconds", type=float, default=20, help="default %(default)s")
    parser.add_argument("--overhead-rounds", type=int, default=60, help="default %(default)s")
    parser.add_argument("--sustained-seconds", type=float, default=60, help="default %(default)s")
    parser.add_argument("--sustained-rounds", type=int, default=1, help="default %(default)s")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    print(describe_machine())
    take_priority()
    with tempfile.TemporaryDirectory() as folder:
        setup = Setup(options, pathlib.Path(folder))
        figures = {part: PARTS[part](setup) for part in PARTS if part in options.parts}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
