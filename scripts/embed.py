#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns files into a C array of their bytes, one file after the other.

usage: embed.py NAME HEADER OUTPUT FILE...
       embed.py --binary NAME HEADER OUTPUT FILE...

OUTPUT defines `const char NAME[SIZE + 1]`, with a NUL at the end; it includes HEADER, which declares the name. Files with a
NUL in them are refused, because its array would seem to end there. With --binary it is `const unsigned char
NAME[SIZE + 1]`, of any bytes, and `const size_t NAME_size`, which does not count the NUL. Both are string literals,
which compilers read ten times as fast as lists of numbers.
"""
import sys

PLAIN = {code: chr(code) for code in range(32, 127) if chr(code) not in '"\\?'}  # ? could begin a trigraph


def literal(line):
    """A C string literal; octal escapes are always three digits, so that no digit behind them counts."""
    return '"' + "".join(PLAIN.get(byte) or f"\\{byte:03o}" for byte in line) + '"'


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(header, declaration, size, lines, output):
    text = "\n".join("    " + literal(line) for line in lines or [b""])
    with open(output, "w", encoding="ascii") as file:
        file.write(f'#include "{header}"\n\n{declaration}[{size} + 1] =\n{text};\n')


def embed_binary(name, header, output, *sources):
    data = b"".join(read(source) for source in sources)
    rows = [data[i : i + 32] for i in range(0, len(data), 32)]
    size = f"const size_t {name}_size = {len(data)};\n"
    write(header, size + f"const unsigned char {name}", len(data), rows, output)


def embed_text(name, header, output, *sources):
    data = b"".join(read(source) for source in sources)
    if b"\0" in data:
        sys.exit(f"embed.py: {' '.join(sources)} hold a NUL, so they cannot be embedded as text")
    write(header, f"const char {name}", len(data), data.splitlines(keepends=True), output)


if __name__ == "__main__":
    if len(sys.argv) >= 6 and sys.argv[1] == "--binary":
        embed_binary(*sys.argv[2:])
    elif len(sys.argv) >= 5:
        embed_text(*sys.argv[1:])
    else:
        sys.exit(__doc__)
