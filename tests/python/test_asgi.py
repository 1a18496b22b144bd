# SPDX-License-Identifier: Apache-2.0
"""models.server.app: uvicorn becomes the server, or says why not."""

import os
import re
import signal
import subprocess
import sys

import pytest

from python import places
from server.running import Connection, message

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def folder(synthetic_weights, tmp_path_factory):
    return places.folder(tmp_path_factory.mktemp("asgi") / "weights", synthetic_weights)


@pytest.fixture
def environment(root, folder, tmp_path):
    """A launcher's: PYTHONPATH with the folder that holds `models`, and the weights."""
    path = ":".join(part for part in os.environ["PATH"].split(":") if not os.path.exists(part + "/lensing"))
    return {
        **places.environment(tmp_path / "hub"),
        "PATH": path,
        "PYTHONPATH": str(root / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SP_WEIGHTS_DIR": str(folder),
    }


def start(environment, *options, **popen):
    command = [sys.executable, "-m", "uvicorn", *map(str, options), "models.server.app:app"]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", **popen
    )


def wait_until_ready(process):
    """The address, and the log up to its line."""
    log = []
    for line in process.stdout:
        log.append(line)
        found = re.search(r"running on http://(\S+):(\d+) ", line)
        if found:
            return found[1], int(found[2]), "".join(log)
    raise AssertionError("".join(log))


def end(process):
    """Exit code and the rest of the log, after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=60)[0]
    return process.returncode, rest


def get(port, target):
    with Connection(port) as connection:
        connection.send(message("GET", target))
        return connection.answer()


@pytest.mark.parametrize("found_by", ["variable", "beside", "PATH"])
def test_uvicorn_becomes_the_server(environment, program, root, tmp_path, found_by):
    if found_by == "variable":
        environment["LENSING_PROGRAM"] = str(program)
    elif found_by == "PATH":
        environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    else:
        (tmp_path / "models" / "server").mkdir(parents=True)
        app = (root / "python" / "models" / "server" / "app.py").read_text()
        (tmp_path / "models" / "server" / "app.py").write_text(app)
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "lensing").symlink_to(program)
        environment["PYTHONPATH"] = str(tmp_path)
    process = start(environment, "--host", "127.0.0.1", "--port", "0", "--lifespan", "on")
    try:
        host, port, log = wait_until_ready(process)
        assert host == "127.0.0.1"
        assert f"Started server process [{process.pid}]" in log
        assert "Application startup complete" in log
        assert os.readlink(f"/proc/{process.pid}/exe") == str(program.resolve())
        assert get(port, "/health").json["status"] == "ok"
        assert get(port, "/v1/models").json["object"] == "list"
        code, rest = end(process)
        assert code == 0
        assert f"Finished server process [{process.pid}]" in rest
    finally:
        process.kill()
        process.wait()


def test_options_of_uvicorn(environment, program):
    environment.update(LENSING_PROGRAM=str(program), UVICORN_HOST="127.0.0.2", UVICORN_PORT="1")
    process = start(environment, "--port=0", "--log-level", "warning")
    try:
        host, port, _ = wait_until_ready(process)
        assert host == "127.0.0.2" and port > 1
        assert end(process)[0] == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        ((), {"LENSING_PROGRAM": "/nonexistent/lensing"}, "LENSING_PROGRAM is '/nonexistent/lensing'"),
        ((), {"LENSING_PROGRAM": ""}, "no program 'lensing' in .*; set LENSING_PROGRAM"),
        (("--fd", "0"), {}, "uvicorn's --fd"),
        ((), {"SP_WEIGHTS_DIR": "/nonexistent/weights"}, "'/nonexistent/weights'"),
    ],
    ids=["variable", "nowhere", "fd", "weights"],
)
def test_failures_end_uvicorn(environment, program, options, variables, words):
    if "LENSING_PROGRAM" not in variables:
        environment["LENSING_PROGRAM"] = str(program)
    environment.update(variables)
    process = start(environment, *(options or ("--port", "0")), stdin=subprocess.DEVNULL)
    log = process.communicate(timeout=60)[0]
    assert process.returncode == 3, log
    assert re.search(words, log), log
    assert "Application startup failed. Exiting." in log


def test_several_workers_are_refused(environment, program):
    environment.update(LENSING_PROGRAM=str(program))
    code = (
        "import asyncio, sys; import models.server.app as a\n"
        "async def receive(): return {'type': 'lifespan.startup'}\n"
        "async def send(message): print(message)\n"
        "asyncio.run(a.app({'type': 'lifespan'}, receive, send))\n"
    )
    for words, variables in ((["--workers", "4"], {}), ([], {"WEB_CONCURRENCY": "4"})):
        told = subprocess.run(
            [sys.executable, "-c", code, *words, "--port", "0"],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert told.returncode == 0, told.stderr
        assert "lifespan.startup.failed" in told.stdout and "4 workers" in told.stdout


def test_without_lifespan_requests_are_refused(environment, program):
    process = start({**environment, "LENSING_PROGRAM": str(program)}, "--port", "0", "--lifespan", "off")
    try:
        _, port, _ = wait_until_ready(process)
        answer = get(port, "/health")
        assert answer.status == 500 and "--lifespan on" in answer.body.decode()
        end(process)
    finally:
        process.kill()
        process.wait()


def test_importing_needs_nothing(environment, tmp_path):
    """No device, no weights, no other package, from any folder."""
    code = "import models.server.app as a; assert a.app"
    environment = {"PYTHONPATH": environment["PYTHONPATH"], "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-S", "-c", code], env=environment, cwd=tmp_path, check=True)
