# SPDX-License-Identifier: Apache-2.0
"""Makes the n-th call of a running program fail, with fail_nth.c."""
import mmap
import os
import struct

NOTHING, MEMORY, THREAD, MMAP, ACCEPT, WRITE = range(6)
FOREVER = 1 << 62
FIELDS = {"kind": 0, "left": 8, "repeat": 16, "failed": 24, "blocks": 32}


class Faults:
    """One program at a time may be started with `environment`."""

    def __init__(self, library, path):
        path.write_bytes(bytes(64))
        descriptor = os.open(path, os.O_RDWR)
        self.memory = mmap.mmap(descriptor, 64)
        os.close(descriptor)
        self.environment = {"LD_PRELOAD": str(library), "LENSING_FAULTS": str(path)}

    def set(self, field, value):
        struct.pack_into("<q", self.memory, FIELDS[field], value)

    def get(self, field):
        return struct.unpack_from("<q", self.memory, FIELDS[field])[0]

    def arm(self, kind, n, repeat=1):
        """The n-th call from now on fails, and the ones after it as far as `repeat` goes."""
        self.set("kind", NOTHING)
        self.set("left", n)
        self.set("repeat", repeat)
        self.set("failed", 0)
        self.set("kind", kind)

    def disarm(self):
        """How many calls failed."""
        self.set("kind", NOTHING)
        return self.get("failed")
