# SPDX-License-Identifier: Apache-2.0
"""For launchers that run `uvicorn models.server.app:app`: an ASGI application that becomes `lensing serve`.

uvicorn runs the start-up of an application before it opens the port. There this one replaces the process by the
`lensing` program, with the host and port of uvicorn's command line: process id, log, signals and exit code are then the
program's.

The folder that holds `models` must be on PYTHONPATH; nothing else is needed. The program is looked for

1. under the name in the variable LENSING_PROGRAM, if it is set;
2. as bin/lensing beside `models`;
3. beside this Python's own programs, where `pip install` puts some;
4. on PATH.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

_NAME = "lensing"
# What uvicorn takes when it is not told.
_HOST, _PORT = "127.0.0.1", "8000"
# Options under which the process that runs the start-up is not the one that listens, or listens elsewhere.
_REFUSED = ("--fd", "--uds", "--reload", "--ssl-keyfile", "--ssl-certfile")


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """The ASGI application."""
    if scope["type"] != "lifespan":
        await _refuse(scope, send)
        return
    await receive()
    try:
        _become(_command(sys.argv[1:]))
    except (OSError, ValueError) as error:
        await send({"type": "lifespan.startup.failed", "message": f"RuntimeError: {error}"})


def _command(arguments: list[str]) -> list[str]:
    """The command line of the program.

    Raises:
        FileNotFoundError: there is no such program.
        ValueError: it cannot do what is asked of uvicorn.
    """
    for name in _REFUSED:
        if _option(arguments, name) is not None:
            raise ValueError(f"uvicorn's {name} is set, which `lensing serve` cannot take over; use --host and --port")
    workers = _option(arguments, "--workers") or os.environ.get("WEB_CONCURRENCY") or "1"
    if workers != "1":
        raise ValueError(f"uvicorn is to start {workers} workers; `lensing serve` is one process that uses all CPUs")
    host = _option(arguments, "--host") or os.environ.get("UVICORN_HOST") or _HOST
    port = _option(arguments, "--port") or os.environ.get("UVICORN_PORT") or _PORT
    return [str(find_program()), "serve", "--host", host, "--port", port]


def find_program() -> Path:
    """The `lensing` program.

    Raises:
        FileNotFoundError: there is none.
    """
    named = os.environ.get("LENSING_PROGRAM")
    if named:
        places = [named]
    else:
        beside = Path(__file__).resolve().parents[2] / "bin"
        places = [str(beside / _NAME), str(Path(sysconfig.get_path("scripts")) / _NAME), _NAME]
    for place in places:
        found = shutil.which(place)
        if found is not None:
            return Path(found).resolve()
    if named:
        raise FileNotFoundError(f"LENSING_PROGRAM is {named!r}, and there is no such program")
    raise FileNotFoundError(
        f"no program {_NAME!r} in {places[0]}, {places[1]} or PATH; set LENSING_PROGRAM to its path"
    )


def _option(arguments: list[str], name: str) -> str | None:
    """The value of an option, "--name value" or "--name=value"; the last one counts, as for uvicorn."""
    value = None
    for index, argument in enumerate(arguments):
        if argument == name:
            value = arguments[index + 1] if index + 1 < len(arguments) else ""
        elif argument.startswith(name + "="):
            value = argument[len(name) + 1 :]
    return value


def _become(command: list[str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)


async def _refuse(scope: Message, send: Callable[[Message], Awaitable[None]]) -> None:
    """Requests come here only without a start-up."""
    text = "uvicorn runs with --lifespan off; models.server.app needs --lifespan on to start the server"
    if scope["type"] != "http":
        raise RuntimeError(text)
    body = text.encode() + b"\n"
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})
