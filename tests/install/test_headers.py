# SPDX-License-Identifier: Apache-2.0
"""Every public header compiles alone, as C11 and as C++, without a warning."""
import os
import subprocess
from pathlib import Path

import pytest

HEADERS = sorted(path.name for path in (Path(__file__).resolve().parents[2] / "include" / "lensing").glob("*.h"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(
    "compiler",
    [
        [os.environ.get("CC", "cc"), "-std=c11", "-x", "c"],
        [os.environ.get("CXX", "c++"), "-std=c++11", "-x", "c++"],
    ],
    ids=["c", "c++"],
)
def test_header_compiles_alone(root, compiler, header):
    source = f"#include <lensing/{header}>\nint lensing_header_test;\n"
    command = [*compiler, *WARNINGS, "-fsyntax-only", "-I", str(root / "include"), "-"]
    subprocess.run(command, input=source, text=True, check=True)


def test_main_header_includes_every_header(root):
    text = (root / "include" / "lensing" / "lensing.h").read_text(encoding="utf-8")
    assert [name for name in HEADERS if name != "lensing.h" and f"#include <lensing/{name}>" not in text] == []
