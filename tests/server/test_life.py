# SPDX-License-Identifier: Apache-2.0
"""Start, signals, stop: what launchers and supervisors see."""
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from running import STRICT, TIME_LIMIT, Connection, Server, clean_environment, encoded, message, picture, without_timing

LATE = 0.5 if STRICT else 20  # seconds that a busy machine may take for what comes at once
LARGE = "/predict_raw?max_keypoints=-1&keypoint_threshold=0&nms_radius=0"
LANDMARKS = [
    r"^INFO:     Started server process \[PID\]$",
    r"^INFO:     Waiting for application startup\.$",
    r"^INFO:     \[superpoint\] Loading weights ",
    r"^INFO:     \[superpoint\] Loading weights done in \d+\.\ds$",
    r"^INFO:     \[superpoint\] Opening device 0 \(",
    r"^INFO:     \[superpoint\] Device open: ",
    r"^INFO:     \[superpoint\] Warming up ",
    r"^INFO:     \[superpoint\] Warmup complete: first forward \d+ ms$",
    r"^INFO:     Application startup complete\.$",
    r"^INFO:     Uvicorn running on http://127\.0\.0\.1:PORT \(Press CTRL\+C to quit\)$",
    r"^INFO:     127\.0\.0\.1:\d+ - \"POST /predict_raw\?nms_radius=3 HTTP/1\.1\" 200 OK$",
    r"^INFO:     127\.0\.0\.1:\d+ - \"GET /nothing HTTP/1\.1\" 404 Not Found$",
    r"^INFO:     Shutting down$",
    r"^INFO:     Waiting for application shutdown\.$",
    r"^INFO:     \[superpoint\] Closing device$",
    r"^INFO:     Application shutdown complete\.$",
    r"^INFO:     Finished server process \[PID\]$",
]


def test_landmarks(start):
    server = start()
    print(f"from start to ready: {(time.monotonic() - server.started) * 1e3:.0f} ms")
    assert server.post("/predict_raw?nms_radius=3", encoded(picture())).status == 200
    assert server.get("/nothing").status == 404
    assert server.stop() == 0
    lines = server.log().splitlines()
    assert len(lines) == len(LANDMARKS), lines
    for line, pattern in zip(lines, LANDMARKS):
        pattern = pattern.replace("PID", str(server.pid)).replace("PORT", str(server.port))
        assert re.search(pattern, line), (line, pattern)


def test_log_cannot_be_forged(start):
    server = start()
    server.get("/a%0d%0aINFO:%20%20Application?x=\x1b[31m")
    server.raw(b'GET /a"b HTTP/1.1\r\nHost: t\r\n\r\n')
    server.raw(b"GET /\xc3\xa9\x85 HTTP/1.1\r\nHost: t\r\n\r\n")
    server.stop()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", server.log())
    assert "\nINFO:  Application" not in server.log() and 'a"b' not in server.log()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def connect_soon(server, port):
    """A connection as soon as the port is open."""
    while True:
        try:
            return Connection(port)
        except ConnectionRefusedError:
            assert server.process.poll() is None, server.log()
            time.sleep(0.0005)


# A start takes some ten milliseconds, which a client on a busy machine may miss.
STARTS = 50


def test_requests_while_starting(program, weights):
    """The port is open before the model is there: /health says so, a picture waits for the model."""
    for _ in range(STARTS):
        port = free_port()
        server = Server(program, weights, port=port)
        try:
            with connect_soon(server, port) as early:
                for target in ("/health", "/ready", "/info"):
                    early.send(message("GET", target))
                early.send(message("POST", "/predict_raw", encoded(picture())))
                health, ready, info, detected = (early.answer() for _ in range(4))
                assert detected.status == 200 and detected.json["num_keypoints"] > 0
                early.send(message("GET", "/ready"))
                assert early.answer().status == 200
            server.wait_until_ready()
            assert server.get("/health").json["status"] == "ok"
            assert server.get("/info").json["warmup_ms"]["first_forward"] > 0
            assert server.stop() == 0
        finally:
            server.close()
        if info.status == 503:
            assert health.status == 200 and ready.status == 503
            assert health.json["status"] == "starting" and health.json["device"]["open"] is False
            return
    pytest.fail(f"no request came before the model in {STARTS} starts")


class HeldServer(Server):
    """Stays before the loading of its model, with its port open, until release(): its log has room for two lines."""

    def __init__(self, program, weights, **options):
        self.is_read = threading.Event()
        page = resource.getpagesize()
        fill = ("sh", "-c", f"printf '%{page - 100}s\\n' ''; exec \"$@\"", "sh")
        super().__init__(program, weights, prefix=fill, pipesize=page, **options)

    def read_log(self):
        self.is_read.wait()
        super().read_log()

    def release(self):
        self.is_read.set()

    def close(self):
        self.release()
        super().close()


def test_failed_start_leaves_nobody_waiting(program, weights, tmp_path):
    """Requests that wait for a model that turns out to be bad are answered, or see the end of the connection."""
    path = tmp_path / "nan.safetensors"
    path.write_bytes(Path(weights).read_bytes()[:-4] + b"\xff" * 4)
    port = free_port()
    server = HeldServer(program, path, port=port)
    try:
        with connect_soon(server, port) as early:
            early.send(message("POST", "/predict_raw", encoded(picture())))
            time.sleep(0.2)  # as good as always enough for the server to take the request
            server.release()
            answer = early.answer()
        assert answer is None or answer.status == 503
        check_refused_start(server.wait(), server.log(), "is not a finite number")
    finally:
        server.close()


def test_bf16(program, weights):
    """Serves with it where the CPU has it, and says so; refuses to start where it has not."""
    features = json.loads(subprocess.run([program, "info", "--json"], capture_output=True).stdout)["cpu_features"]
    if "avx512_bf16" not in features.split():
        check_refused_start(*failed_start(program, weights, "--precision", "bf16"), "bf16", "AVX512_BF16")
        return
    data, scores = encoded(picture()), []
    for precision in ("bf16", "fp32"):
        with Server(program, weights, "--precision", precision) as server:
            assert f" {precision}, " in server.get("/info").json["serving_path"]["note"]
            scores.append(server.post("/predict_raw", data).json["scores"])
    assert scores[0] != scores[1] and abs(scores[0][0] - scores[1][0]) < 0.05


# ---- Failing starts -----------------------------------------------------------------------------


def failed_start(program, weights, *options, **more):
    server = Server(program, weights, *options, **more)
    code = server.wait()
    seconds = time.monotonic() - server.started
    server.close()
    print(f"\nended after {seconds * 1e3:.0f} ms")
    assert seconds < (0.2 if STRICT else LATE)
    return code, server.log()


def test_port_in_use(program, weights):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, log = failed_start(program, weights, port=port)
    assert code == 1
    errors = [line for line in log.splitlines() if line.startswith("ERROR")]
    assert len(errors) == 1 and "Address already in use" in errors[0] and f"port {port}" in errors[0], log
    assert "Application startup complete" not in log


def check_refused_start(code, log, *words):
    assert code == 3, log
    assert log.splitlines()[-1] == "ERROR:    Application startup failed. Exiting.", log
    errors = [line for line in log.splitlines() if line.startswith("ERROR")]
    assert len(errors) == 2, log
    for word in words:
        assert word in errors[0], log
    assert "Application startup complete" not in log


def test_missing_weights(program, tmp_path):
    path = tmp_path / "none.safetensors"
    check_refused_start(*failed_start(program, path), str(path))


def test_corrupt_weights(program, weights, tmp_path):
    data = Path(weights).read_bytes()
    for i, damaged in enumerate([b"", b"hello", data[: len(data) // 2], b"\xff" * 4096]):
        path = tmp_path / f"damaged{i}.safetensors"
        path.write_bytes(damaged)
        check_refused_start(*failed_start(program, path), path.name)


BAD_ENVIRONMENT = [
    ("TT_MESH_SHAPE", "", "TT_MESH_SHAPE='' is not a mesh shape; expected 'RxC' such as '1x1'"),
    ("TT_MESH_SHAPE", "1", "TT_MESH_SHAPE='1' is not a mesh shape"),
    ("TT_MESH_SHAPE", "1x1x1", "TT_MESH_SHAPE='1x1x1' is not a mesh shape"),
    ("TT_MESH_SHAPE", "2x4", "TT_MESH_SHAPE=2x4 is a multi-chip mesh"),
    ("TT_DEVICE_ID", "zero", "TT_DEVICE_ID='zero'"),
    ("TT_DEVICE_ID", "", "TT_DEVICE_ID=''"),
    ("TT_DEVICE_ID", "99999999999999999999", "TT_DEVICE_ID"),
    ("TT_FUSED_STAGES", "wide,quick", "'quick'"),
    ("SP_DISPATCH", "ethernet", "SP_DISPATCH='ethernet'"),
]


@pytest.mark.parametrize("name, value, words", BAD_ENVIRONMENT)
def test_bad_environment(program, weights, name, value, words):
    check_refused_start(*failed_start(program, weights, env={name: value}), words)


@pytest.mark.parametrize("shape", ["1x1", "(1, 1)", "[1,1]", "a1b1"])
def test_good_environment(start, shape):
    server = start(env={"TT_MESH_SHAPE": shape, "TT_DEVICE_ID": "7", "TT_FUSED_STAGES": "", "SP_DISPATCH": "worker"})
    assert server.get("/health").json["device"]["id"] == 7


def test_no_folder_of_weights(program, tmp_path):
    code, log = failed_start(program, None, env={"SP_WEIGHTS_DIR": str(tmp_path / "none")})
    check_refused_start(code, log, f"SP_WEIGHTS_DIR='{tmp_path / 'none'}' is not a directory")


def test_weights_from_the_environment(program, weights, tmp_path):
    folder = tmp_path / "snapshot"
    folder.mkdir()
    shutil.copy(weights, folder / "model.safetensors")
    (folder / "config.json").write_text('{"border_removal_distance": 4}')
    for variable in ("SP_WEIGHTS_DIR", "HF_MODEL"):
        with Server(program, None, env={variable: str(folder)}) as server:
            info = server.get("/info").json
            assert info["weights"]["loaded"] is True
            if variable == "HF_MODEL":
                assert server.get("/v1/models").json["data"][0]["id"] == str(folder)


def test_weights_when_none_are_named(program, builtin_weights, tmp_path):
    """Those inside the library; the log, /info and /v1/models name them."""
    name = builtin_weights.name.removesuffix(".safetensors")
    body = encoded(picture())
    with Server(program, builtin_weights) as server:
        expected = without_timing(server.post("/predict_raw", body).body)
    for options, environment in (
        ([], {}),
        ([], {"HF_MODEL": "", "SP_WEIGHTS_DIR": "", "TT_WEIGHTS_REVISION": ""}),
        ([], {"HF_MODEL": name, "TT_WEIGHTS_REVISION": "main"}),
        (["--weights", name], {"SP_WEIGHTS_DIR": str(tmp_path), "TT_WEIGHTS_REVISION": "main"}),
    ):
        with Server(program, None, *options, env=environment) as server:
            info = server.get("/info").json
            assert info["weights"] == {"repo": name, "revision": None, "local_dir": None, "loaded": True}
            assert info["license"] == "Weights: Apache-2.0. Lensing itself: Apache-2.0."
            assert server.get("/v1/models").json["data"][0]["id"] == name
            assert f"Loading weights {name}, which are inside the library" in server.log()
            assert without_timing(server.post("/predict_raw", body).body) == expected


def test_named_weights_are_not_those_inside(program, weights, tmp_path):
    missing = {"HF_HUB_CACHE": str(tmp_path), "TT_WEIGHTS_REVISION": "main"}
    code, log = failed_start(program, None, env=missing)
    check_refused_start(code, log, "weights 'magic-leap-community/superpoint' (revision main) are not on this machine")
    with Server(program, weights, env=missing) as server:
        assert server.get("/info").json["weights"]["repo"] == str(weights)
        assert server.get("/info").json["weights"]["revision"] is None


@pytest.mark.parametrize("options", [["--port", "65536"], ["--queue", "0"], ["--nonsense"], ["word"], ["--min-rate", "0"]])
def test_wrong_usage(program, weights, options):
    code, log = failed_start(program, weights, *options)
    assert code == 2 and len(log.splitlines()) <= 2, log


def test_host_must_be_an_address(program, weights):
    code, log = failed_start(program, weights, "--host", "localhost")
    assert code == 1 and "localhost" in log


# ---- Signals ------------------------------------------------------------------------------------


def can_connect(port):
    try:
        Connection(port, 1).close()
        return True
    except OSError:
        return False


def occupy(server, target, count):
    """Connections with a request for the network each."""
    connections = [server.connect() for _ in range(count)]
    for connection in connections:
        connection.send(message("POST", target, encoded(picture())))
    return connections


def wait_for_queue(server, length):
    end = time.monotonic() + TIME_LIMIT
    while server.metric("lensing_queue_length") < length:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_drain(start, number):
    """What was accepted is answered; /ready says so on a connection that is open; nobody new comes in."""
    server = start("--threads", "1", "--idle-timeout", "60")
    open_connection = server.connect()
    open_connection.send(message("GET", "/ready"))
    assert open_connection.answer().status == 200
    began = time.monotonic()
    assert server.post("/predict_raw", encoded(picture())).status == 200
    service = time.monotonic() - began
    running = occupy(server, "/predict_raw", 10)
    wait_for_queue(server, 2)
    server.signal(number)
    began = time.monotonic()
    while can_connect(server.port):
        assert time.monotonic() - began < (0.05 if STRICT else LATE), "the server still takes connections"
    closed = time.monotonic() - began
    open_connection.send(message("GET", "/ready"))
    answer = open_connection.answer()
    assert answer.status == 503 and answer.headers["connection"].lower() == "close"
    for connection in running:
        answer = connection.answer()
        assert answer.status == 200 and answer.headers["connection"].lower() == "close"
        assert connection.is_closed()
        connection.close()
    open_connection.close()
    assert server.wait() == 0
    ended = time.monotonic() - began
    print(f"\nnobody new after {closed * 1e3:.1f} ms, end after {ended * 1e3:.0f} ms, one request {service * 1e3:.0f} ms")
    assert ended < len(running) * service + (1 if STRICT else 20)
    assert "Finished server process" in server.log()


def test_second_signal_forces(start):
    server = start("--threads", "1")
    running = occupy(server, LARGE, 30)
    wait_for_queue(server, 2)
    server.signal()
    server.wait_for_line("Shutting down")
    began = time.monotonic()
    server.signal()
    assert server.wait() == 1 and time.monotonic() - began < LATE
    for connection in running:
        connection.close()


def test_drain_timeout(start):
    server = start("--threads", "1", "--drain-timeout", "0.2")
    running = occupy(server, LARGE, 30)
    wait_for_queue(server, 2)
    began = time.monotonic()
    server.signal()
    assert server.wait() == 1 and time.monotonic() - began < 0.2 + LATE
    for connection in running:
        connection.close()


def test_idle_connections_do_not_hold_the_stop(start):
    server = start("--idle-timeout", "60", "--header-timeout", "60")
    others = [server.connect() for _ in range(5)]
    others[0].send(message("GET", "/health"))
    assert others[0].answer().status == 200
    began = time.monotonic()
    assert server.stop() == 0 and time.monotonic() - began < LATE
    for other in others:
        assert other.is_closed()
        other.close()


def test_hangup_is_ignored(start):
    server = start()
    for _ in range(3):
        server.signal(signal.SIGHUP)
    server.signal(signal.SIGPIPE)
    time.sleep(0.1)
    assert server.get("/health").status == 200
    assert server.stop() == 0


def test_closed_log(program, weights):
    """Nobody reads the log any more: the server goes on."""
    command = [program, "serve", "--port", "0", "--weights", weights]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=clean_environment())
    try:
        for line in process.stdout:
            if b"Uvicorn running" in line:
                break
        process.stdout.close()
        port = int(re.search(rb":(\d+) \(", line).group(1))
        for _ in range(5):
            with Connection(port) as connection:
                connection.send(message("GET", "/health"))
                assert connection.answer().status == 200
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def test_log_on_a_full_device(program, weights):
    """The log cannot be written: the server goes on, and ends as always."""
    port = free_port()
    command = [program, "serve", "--port", str(port), "--weights", weights]
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(command, stdout=full, stderr=full, env=clean_environment())
    try:
        end = time.monotonic() + TIME_LIMIT
        while not can_connect(port):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        for _ in range(5):
            with Connection(port) as connection:
                connection.send(message("POST", "/predict_raw", encoded(picture())))
                assert connection.answer().status == 200
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


# ---- Surroundings -------------------------------------------------------------------------------


def test_inherited_descriptors_are_closed(start):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    server = start(pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert select.select([pipe], [], [], 10)[0], "the server still holds the other end"
        assert pipe.read() == b""  # the end of it, while the server runs
    assert server.get("/health").status == 200


def test_launched_by_python(start):
    """A launcher in Python becomes the server with exec(), its signals blocked and a socket open."""
    launcher = (
        "import os, signal, socket, sys\n"
        "s = socket.create_server(('127.0.0.1', 0)); s.set_inheritable(True)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    server = start(prefix=[sys.executable, "-c", launcher])
    assert server.descriptors() <= 12
    assert server.get("/health").status == 200
    assert server.stop() == 0


def test_any_user(program, weights):
    """As a uid that has no name, no home and no group."""
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copy(weights, Path(folder) / "w.safetensors")
        os.chmod(Path(folder) / "w.safetensors", 0o644)
        shutil.copy(program, Path(folder) / "lensing")
        user = {"user": 54321, "group": 54321, "extra_groups": [], "cwd": "/"}
        with Server(Path(folder) / "lensing", Path(folder) / "w.safetensors", env={"HOME": "/nonexistent"}, **user) as server:
            assert server.status("Uid") == 54321
            assert server.post("/predict_raw", encoded(picture())).status == 200
            assert server.stop() == 0


def test_no_file_is_written(start, sanitized):
    """Every write to a file would fail."""
    if sanitized:
        pytest.skip("a sanitizer makes files for itself")
    server = start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert server.post("/predict_raw", encoded(picture())).status == 200
    assert server.stop() == 0


def test_read_only_root(program, weights):
    """As nobody, with a root file system that cannot be written."""
    script = (
        "mount -o remount,ro,bind / || exit 77; touch /x 2>/dev/null && exit 78; "
        'exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"'
    )
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh"]
    probe = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"the root file system cannot be made read-only here: {probe.stderr.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for path, name in ((program, "lensing"), (weights, "w.safetensors")):
            shutil.copy(path, Path(folder) / name)
            os.chmod(Path(folder) / name, 0o755)
        with Server(Path(folder) / "lensing", Path(folder) / "w.safetensors", prefix=prefix) as server:
            assert server.status("Uid") == 65534
            assert server.post("/predict_raw", encoded(picture())).status == 200
            assert server.stop() == 0


def test_systemd_is_notified(program, weights, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifications:
        notifications.bind(str(tmp_path / "notify"))
        notifications.settimeout(60)
        with Server(program, weights, env={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as server:
            assert notifications.recv(100) == b"READY=1"
            assert server.stop() == 0
            assert notifications.recv(100) == b"STOPPING=1"


def test_nothing_wakes_an_idle_server(program, weights, sanitized):
    """Without a connection every thread sleeps, so that a CPU of a robot can too."""
    if sanitized:
        pytest.skip("a sanitizer has a thread of its own")
    with Server(program, weights) as server:
        assert server.get("/ready").status == 200
        counts = []
        for _ in range(10):  # the first seconds may see the end of the connection
            counts.append(server.switches())
            if counts[-2:-1] == counts[-1:]:
                break
            time.sleep(1)
        assert counts[-2] == counts[-1], counts


def test_start_and_stop(program, weights, sanitized):
    """Many times, with a request each: always clean."""
    count = int(os.environ.get("LENSING_SERVER_CYCLES", 8 if sanitized else 20))
    times = []
    for _ in range(count):
        with Server(program, weights) as server:
            times.append(time.monotonic() - server.started)
            assert server.get("/ready").status == 200
            assert server.stop() == 0
    print(f"{count} starts: {min(times) * 1e3:.0f} to {max(times) * 1e3:.0f} ms")
