#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the programs of Blackhole tiles and compares them with the prebuilt ones, byte by byte.

usage: check_kernels.py KERNELS_FOLDER

Other versions of the compiler make other code, so this needs the one that prebuilt/COMPILER names. Exit code 77: skipped.
"""
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

COMPILER = "riscv64-unknown-elf-gcc"


def main(folder):
    spec = importlib.util.spec_from_file_location("build", folder / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    wanted = (folder / "prebuilt" / "COMPILER").read_text(encoding="ascii").strip()
    found = build.version(COMPILER) if shutil.which(COMPILER) else "none"
    if found != wanted:
        print(f"SKIP: the prebuilt programs of Blackhole tiles were not compared: they need {wanted}, and there is {found}")
        return 77
    with tempfile.TemporaryDirectory() as work:
        for name in build.KERNELS:
            build.build(COMPILER, name, str(Path(work) / name))
            if (Path(work) / name).read_bytes() != (folder / "prebuilt" / (name + ".bin")).read_bytes():
                sys.exit(f"prebuilt/{name}.bin is not what {name}.c compiles to; renew it: build.py --prebuilt {COMPILER}")
            print(f"{name}: the same")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
