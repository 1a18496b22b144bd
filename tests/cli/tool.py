# SPDX-License-Identifier: Apache-2.0
"""The `lensing` program, run in a folder, and how tests read what it writes."""
import io
import json
import os
import re
import subprocess

import numpy as np
from PIL import Image

COMMANDS = ["detect", "match", "fetch", "info", "bench", "serve", "blackhole-selftest"]
ENVIRONMENT = ["LENSING_CPU", "HF_MODEL", "SP_WEIGHTS_DIR", "TT_WEIGHTS_REVISION", "HF_HOME", "HF_HUB_CACHE"]
ALL_ENVIRONMENT = ENVIRONMENT + ["HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"]


def paint(path, seed, size=(96, 72)):
    """A small picture with corners."""
    random = np.random.default_rng(seed)
    pixels = np.full((size[1], size[0], 3), 128, np.uint8)
    for _ in range(30):
        x, y = random.integers(0, size[0]), random.integers(0, size[1])
        pixels[y : y + random.integers(4, 30), x : x + random.integers(4, 30)] = random.integers(0, 256, 3)
    Image.fromarray(pixels).save(path)


class Tool:
    """Runs the program in a folder of its own, with no weights in the environment."""

    def __init__(self, program, weights, folder):
        self.program, self.weights, self.folder = str(program), str(weights), folder
        self.environment = {k: v for k, v in os.environ.items() if k not in ALL_ENVIRONMENT}
        self.environment["HF_HOME"] = str(folder / "no-such-home")

    def popen(self, *arguments, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            [self.program, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            **options,
        )

    def __call__(self, *arguments, env=None, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.popen(*arguments, env=env, **options)
        out, err = process.communicate(input, timeout=300)
        return process.returncode, out or b"", (err or b"").decode()

    def detect(self, *arguments, **options):
        return self("detect", *arguments, "-w", self.weights, **options)

    def lines(self, *arguments):
        """The JSON objects of a detect that must go well."""
        code, out, err = self.detect(*arguments)
        assert (code, err) == (0, "")
        return [json.loads(line) for line in out.decode().splitlines()]


def one_error(err):
    """The text of standard error, which is one line of the program."""
    assert err.startswith("lensing: ") and err.endswith("\n") and err.count("\n") == 1, err
    return err[len("lensing: ") : -1]


def without_times(data):
    """Output with the times masked, which alone may differ between runs."""
    return re.sub(rb'"timing_ms":\{[^}]*\}', b'"timing_ms":{}', data)


def without_weights(data):
    """The same with the names of weights masked too."""
    return re.sub(rb'"weights":\{[^}]*\}', b'"weights":{}', without_times(data))


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def npz(data):
    with np.load(io.BytesIO(data)) as arrays:
        return {name: arrays[name] for name in arrays.files}
