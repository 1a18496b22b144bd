# SPDX-License-Identifier: Apache-2.0
"""The part of a file that says how its picture is to be turned."""
import struct


def exif(orientation, big=False, kind=3, count=1):
    e = ">" if big else "<"
    head = (b"MM" if big else b"II") + struct.pack(e + "HI", 42, 8)
    value = struct.pack(e + "HH", orientation, 0)
    return b"Exif\0\0" + head + struct.pack(e + "HHHI", 1, 0x112, kind, count) + value + bytes(4)
