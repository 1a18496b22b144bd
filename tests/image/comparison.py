# SPDX-License-Identifier: Apache-2.0
"""Decoding a file with Pillow and with Lensing, and comparing the two."""
import io
import os
import subprocess
import warnings

import numpy as np
from PIL import Image

warnings.simplefilter("ignore")


def decode_with_pillow(path):
    """The R plane, or the exception."""
    try:
        # From memory: given a path, Pillow 13 maps uncompressed gray TIFF with swapped sides when it is to be turned.
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            return np.asarray(image.convert("RGB"))[..., 0]
    except Exception as error:  # whatever it is: compared is that there is one
        return error


class Decoder:
    """The helper program, asked for one file after the other."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen(
            [program, *options, "--many"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def decode(self, path):
        """The R plane, or a string with status and message."""
        self.process.stdin.write(os.fsencode(path) + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode(errors="replace").rstrip("\n")
        assert answer, f"the decoder crashed on {path}: {self.process.stderr.read().decode(errors='replace')}"
        if not answer.startswith("ok "):
            return answer.removeprefix("error ")
        width, height = (int(number) for number in answer.split()[1:3])
        return np.frombuffer(self.process.stdout.read(width * height), np.uint8).reshape(height, width)

    def close(self):
        self.process.stdin.close()
        complaints = self.process.stderr.read().decode(errors="replace")
        assert self.process.wait() == 0, complaints
        assert complaints == "", "the library printed something"


def difference(expected, got):
    """None when both agree, else what differs."""
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        if expected.shape != got.shape:
            return f"size {got.shape}, expected {expected.shape}"
        wrong = int((expected != got).sum())
        return f"{wrong} of {expected.size} pixels differ" if wrong else None
    if isinstance(expected, np.ndarray):
        return f"an error ({got}), expected a picture"
    if isinstance(got, np.ndarray):
        return f"a picture, expected an error ({expected!r})"
    return None


def check(decoder, folder, files, capsys, title):
    """Compares all of files, a list of (name, bytes or path). A name that starts with "beyond" says that Pillow cannot read
    the file, or some versions cannot, and Lensing can."""
    failures = []
    errors = 0
    for number, (name, content) in enumerate(files):
        path = content
        if isinstance(content, bytes):
            path = folder / f"{number:04}"
            path.write_bytes(content)
        expected = decode_with_pillow(path)
        errors += not isinstance(expected, np.ndarray)
        got = decoder.decode(path)
        wrong = difference(expected, got)
        if name.startswith("beyond") and isinstance(expected, Exception) and isinstance(got, np.ndarray):
            wrong = None
        if wrong:
            failures.append(f"{name}: {wrong}")
        if isinstance(content, bytes):
            path.unlink()
    with capsys.disabled():
        print(f"\n{title}: {len(files)} files, of which {errors} are errors to Pillow", end=" ")
    assert not failures, f"{len(failures)} of {len(files)}:\n" + "\n".join(failures[:40])
