# SPDX-License-Identifier: Apache-2.0
"""Runs a command and prints, behind its first line of output, the milliseconds until that line and its peak memory in
bytes, each on a line.

A process of its own, with little memory: what the system reports as a child's peak includes what its parent had when it
made the child."""
import os
import subprocess
import sys
import time

start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
line = process.stdout.readline()
took = time.perf_counter() - start
process.stdout.close()
_, status, usage = os.wait4(process.pid, 0)
if status != 0:
    sys.exit(f"{' '.join(sys.argv[1:])}: wait status {status}")
sys.stdout.write(line.decode())
print(took * 1e3)
print(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
