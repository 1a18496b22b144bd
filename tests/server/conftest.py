# SPDX-License-Identifier: Apache-2.0
"""A real server on a free port of 127.0.0.1, with synthetic weights. Every process is ended by its id."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from running import Server, is_sanitized  # noqa: E402


@pytest.fixture(scope="session")
def sanitized(build_dir):
    """Whether the build has a sanitizer: memory grows then, and times are longer."""
    return is_sanitized(build_dir)


@pytest.fixture(scope="session")
def weights(synthetic_weights):
    return synthetic_weights


@pytest.fixture(scope="session")
def server(program, weights):
    """The server that most tests share."""
    with Server(program, weights, "--queue-timeout", 600) as running:
        yield running


@pytest.fixture
def start(program, weights):
    """start(*options, ...) runs a server of its own for one test."""
    servers = []

    def start_server(*options, **more):
        servers.append(Server(program, more.pop("weights", weights), *options, **more))
        return servers[-1].wait_until_ready()

    yield start_server
    for running in servers:
        running.close()
