#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a file into a C array of the same bytes.

usage: embed.py NAME HEADER FILE OUTPUT
       embed.py --binary NAME HEADER FILE OUTPUT

OUTPUT defines `const char NAME[SIZE + 1]`, with a NUL at the end; it includes HEADER, which declares the name. A file that
holds a NUL is refused, because its array would seem to end there. With --binary it is `const unsigned char NAME[SIZE]`,
of any bytes, and `const size_t NAME_size`.
"""
import sys

PLAIN = {code: chr(code) for code in range(32, 127) if chr(code) not in '"\\?'}  # ? could begin a trigraph


def literal(line):
    """A C string literal; octal escapes are always three digits, so that no digit behind them counts."""
    return '"' + "".join(PLAIN.get(byte) or f"\\{byte:03o}" for byte in line) + '"'


def embed_binary(name, header, source, output):
    with open(source, "rb") as file:
        data = file.read()
    rows = [", ".join(str(byte) for byte in data[i : i + 24]) for i in range(0, len(data), 24)]
    with open(output, "w", encoding="ascii") as file:
        file.write(f'#include "{header}"\n\nconst size_t {name}_size = {len(data)};\n')
        file.write(f"const unsigned char {name}[{len(data)}] = {{\n    " + ",\n    ".join(rows) + ",\n};\n")


def embed_text(name, header, source, output):
    with open(source, "rb") as file:
        data = file.read()
    if b"\0" in data:
        sys.exit(f"embed.py: {source} holds a NUL, so it cannot be embedded as text")
    lines = data.splitlines(keepends=True) or [b""]
    text = "\n".join("    " + literal(line) for line in lines)
    with open(output, "w", encoding="ascii") as file:
        file.write(f'#include "{header}"\n\nconst char {name}[{len(data)} + 1] =\n{text};\n')


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] == "--binary":
        embed_binary(*sys.argv[2:])
    elif len(sys.argv) == 5:
        embed_text(*sys.argv[1:])
    else:
        sys.exit(__doc__)
