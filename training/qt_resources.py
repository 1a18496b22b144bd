# SPDX-License-Identifier: Apache-2.0
"""Reads the files inside a Qt resource file (.rcc), where GCompris keeps its photos."""
import functools
import struct
import zlib

COMPRESSED, DIRECTORY = 1, 2


@functools.lru_cache(maxsize=2)
def read(path):
    """Returns {"/name/in/the/resources": bytes}. Stored and zlib-compressed entries; versions 1 to 3 of the format."""
    data = path.read_bytes()
    magic, version, tree, contents, names = struct.unpack_from(">4s4I", data)
    if magic != b"qres":
        raise OSError(f"{path}: not a Qt resource file")
    entry_size = 14 if version == 1 else 22  # from version 2 on each entry ends with a time
    files = {}

    def name_of(offset):
        length = struct.unpack_from(">H", data, names + offset)[0]
        start = names + offset + 6  # behind the length and a hash
        return data[start:start + 2 * length].decode("utf-16-be")

    def walk(index, parent):
        entry = tree + index * entry_size
        name_offset, flags = struct.unpack_from(">IH", data, entry)
        path_here = f"{parent}/{name_of(name_offset)}" if index else ""  # the root has no name
        if flags & DIRECTORY:
            count, first = struct.unpack_from(">II", data, entry + 6)
            for child in range(first, first + count):
                walk(child, path_here)
            return
        start = contents + struct.unpack_from(">I", data, entry + 10)[0]
        size = struct.unpack_from(">I", data, start)[0]
        content = data[start + 4:start + 4 + size]
        # Compressed contents begin with four bytes of their size when uncompressed.
        files[path_here] = zlib.decompress(content[4:]) if flags & COMPRESSED else content

    walk(0, "")
    return files
