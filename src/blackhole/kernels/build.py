#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the program of one core of a Blackhole tile.

usage: build.py COMPILER NAME OUTPUT    compiles NAME.c
       build.py --prebuilt COMPILER     renews prebuilt/, with the version of the compiler beside it

COMPILER is riscv64-unknown-elf-gcc; objcopy of the same folder is used. The output does not depend on where the sources
and the output lie.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Program of a core: where it lies in L1, how much room it has there, and where its stack ends. The places are those of
# program.h; the stack is the core's local memory (8 KiB of core B, 4 KiB of T0, T1 and T2).
KERNELS = {
    "control": (0x0000, 0x4000, 0xFFB02000),
    "unpack": (0x4000, 0x2000, 0xFFB01000),
    "math": (0x6000, 0x2000, 0xFFB01000),
    "pack": (0x8000, 0x2000, 0xFFB01000),
}
FLAGS = [
    "-march=rv32imf_zicsr_zba_zbb", "-mabi=ilp32", "-mcmodel=medany", "-std=gnu11", "-O2", "-ffreestanding", "-nostdlib",
    "-fno-builtin", "-ffp-contract=off", "-fno-jump-tables", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra", "-Werror",
]  # fmt: skip


def version(compiler):
    return subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]


def build(compiler, name, output):
    origin, room, stack = KERNELS[name]
    objcopy = (shutil.which(compiler) or compiler).removesuffix("gcc") + "objcopy"
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        places = [f"-DSTACK_END={stack}", f"-Wl,--defsym=ORIGIN_ADDRESS={origin}", f"-Wl,--defsym=ROOM={room}"]
        sources = ["-T", "core.ld", "start.S", name + ".c"]
        subprocess.run([compiler, *FLAGS, *places, *sources, "-lgcc", "-o", program], check=True, cwd=HERE)
        subprocess.run([objcopy, "-O", "binary", program, os.path.abspath(output)], check=True)
    os.chmod(output, 0o644)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--prebuilt":
        folder = os.path.join(HERE, "prebuilt")
        os.makedirs(folder, exist_ok=True)
        for name in KERNELS:
            build(arguments[1], name, os.path.join(folder, name + ".bin"))
        with open(os.path.join(folder, "COMPILER"), "w", encoding="ascii") as file:
            file.write(version(arguments[1]) + "\n")
    elif len(arguments) == 3 and arguments[1] in KERNELS:
        build(*arguments)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
