#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a file into a C array of the same bytes and a NUL at the end.

usage: embed.py NAME HEADER FILE OUTPUT

OUTPUT defines `const char NAME[SIZE + 1]`; it includes HEADER, which declares the name. A file that holds a NUL is
refused, because its array would seem to end there.
"""
import sys

PLAIN = {code: chr(code) for code in range(32, 127) if chr(code) not in '"\\?'}  # ? could begin a trigraph


def literal(line):
    """A C string literal; octal escapes are always three digits, so that no digit behind them counts."""
    return '"' + "".join(PLAIN.get(byte) or f"\\{byte:03o}" for byte in line) + '"'


def main(name, header, source, output):
    with open(source, "rb") as file:
        data = file.read()
    if b"\0" in data:
        sys.exit(f"embed.py: {source} holds a NUL, so it cannot be embedded as text")
    lines = data.splitlines(keepends=True) or [b""]
    text = "\n".join("    " + literal(line) for line in lines)
    with open(output, "w", encoding="ascii") as file:
        file.write(f'#include "{header}"\n\nconst char {name}[{len(data)} + 1] =\n{text};\n')


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
