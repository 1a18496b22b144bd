#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a request would take on a Blackhole card: a model, since nothing has run on one.

    bench/blackhole_model.py

Follows the plan of src/blackhole/plan.c for one tile of 120 with neighbours at all sides; all tiles do the same at the same
time. Every constant has its source; those that are guesses say so. Prints microseconds for each step of a request, and below
it what the old system is published to take.
"""

CLOCK = 1350.0  # cycles in a microsecond: ISA documentation, BabyRISCV/README.md

# Sources: ISA = github.com/tenstorrent/tt-isa-documentation (BlackholeA0); bench = measurements on a card, docs/ of
# github.com/boopdotpng/blackhole-py; counted = instructions that the simulator executes for the step, one thread.
MVMUL = 1.0  # cycles; ISA MatrixUnit.md
JOB_START = 27 - 16  # cycles to fill and drain the matrix unit; bench, math-backend: 16 MVMUL take 27
UNPACK = 12.5  # cycles for an operand of 2 KiB; bench, unpack-backend, steady rows
UNPACK_START = 2  # cycles for each further UNPACR; ISA UNPACR_Regular.md, address calculation
STEP_INSTRUCTIONS, RUN_INSTRUCTIONS = 12, 4  # of T0 for a step and each run; from the code of unpack.c
VECTOR = 1.0  # cycles an instruction, but 2 for a minimum; ISA VectorUnit.md, SFPSWAP.md
ROUND_INSTRUCTIONS = 3  # for 32 numbers; pack.c
POOL_CYCLES = 2 * (17 + 6) + 1 + 1 + 2 + 1 + 4 + 4  # for half a block of 64 pixels; pack.c
PACK = (16.0, 40)  # bytes in a cycle, and cycles for a new address; guess: a quarter of the four L1 ports of ISA L1.md
# The same from a whole matrix multiplication: 1,316 cycles for 2 KiB, waiting included; bench, pack-backend
SLOW_PACK = (2048 / 1316, 0)
READ_INSTRUCTIONS = 20  # for a NoC read of a row; counted (80 rows: 1,579)
NOC_LATENCY = 231  # cycles, read of a neighbour; bench, noc-microbench
SIGNAL = 214  # cycles, atomic increment with its answer; bench, noc-mcast-mixed
MULTICAST_BYTES = 30.75  # of the source in a cycle; bench, noc-mcast-mixed, the slowest of four
DRAM_LATENCY = 1000  # cycles; guess
IMAGE, SCORES, KEYPOINTS = 37600, 49400, 15000  # instructions of a thread for a block; counted, 3 % of pixels above threshold
CORE = 1.3  # cycles an instruction of these; guess: loads from L1 take 1.25 to 2.6, bench, riscv-memory
STEP_OVERHEAD = 400  # cycles for core B to configure, start and see the end of a step; guess, about 250 instructions
PCIE_BYTES = 40e3  # in a microsecond; guess: PCIe 5 x16 is 63e3 without its overhead
PCIE_LATENCY = 1.5  # microseconds; guess

TILES, WIDTH, HEIGHT = 120, 640, 480

# Layers: jobs, pixels and runs in a job, blocks of 16 outputs and groups of them, steps, phases, pooled, float32 outputs
LAYERS = {
    "1a": (44, 64, 1, 4, 1, 2, 4, False, False),
    "1b, pooled": (40, 64, 2, 4, 1, 37, 2, True, False),
    "2a": (10, 64, 2, 4, 1, 37, 2, False, False),
    "2b, pooled": (10, 64, 2, 4, 1, 37, 2, True, False),
    "3a": (3, 64, 4, 4, 2, 37, 2, False, False),
    "3b, pooled": (3, 64, 4, 4, 2, 73, 2, True, False),
    "4a": (1, 40, 5, 4, 2, 73, 2, False, False),
    "4b": (1, 40, 5, 4, 2, 73, 2, False, False),
    "score a": (1, 40, 5, 4, 4, 73, 2, False, False),
    "score b, 64": (1, 40, 5, 4, 1, 17, 2, False, True),
    "score b, 1": (1, 40, 5, 1, 1, 17, 2, False, True),
    "descriptor a": (1, 40, 5, 4, 4, 73, 2, False, False),
    "descriptor b": (1, 40, 5, 4, 4, 17, 2, False, False),
}
STREAMED = ("4a", "4b", "score a", "score b, 64", "score b, 1", "descriptor a", "descriptor b")
# Rings that are fetched after a layer: width and height of the block, planes
RINGS = {"1b, pooled": (32, 20, 4), "2a": (32, 20, 4), "2b, pooled": (16, 10, 4), "3a": (16, 10, 8), "3b, pooled": (8, 5, 8),
         "4a": (8, 5, 8), "4b": (8, 5, 8)}  # fmt: skip


def job(pack_speed, pixels, runs, blocks, steps, phases, pooled, float32):
    """Cycles of a job in each of the three threads, which work at the same time on jobs that follow one another."""
    multiply = steps * phases * pixels / 8 * blocks * MVMUL + JOB_START
    unpack = steps * max(UNPACK + UNPACK_START * (runs - 1), STEP_INSTRUCTIONS + RUN_INSTRUCTIONS * runs)
    if pooled:
        vector, pixels_out, runs_out = 2 * blocks * POOL_CYCLES * VECTOR, pixels / 4, max(runs // 2, 1)
    else:
        vector, pixels_out, runs_out = pixels * blocks / 2 * ROUND_INSTRUCTIONS * VECTOR, pixels, runs
    if float32:
        vector = 0
    pack_bytes, pack_start = pack_speed
    pack = vector + pixels_out * blocks * (64 if float32 else 32) / pack_bytes + runs_out * blocks * pack_start
    return multiply, unpack, pack


def layer_cycles(pack_speed, jobs, pixels, runs, blocks, groups, steps, phases, pooled, float32):
    """The slowest thread sets the pace; the others add what they need for the first or the last job."""
    multiply, unpack, pack = job(pack_speed, pixels, runs, blocks, steps, phases, pooled, float32)
    slowest = max(multiply, unpack, pack)
    return jobs * groups * slowest + pack + unpack / steps + STEP_OVERHEAD


def stream_cycles(blocks, groups, steps):
    """Weights of a layer by multicast; they come while the units before are computed."""
    return groups * steps * blocks * 512 / MULTICAST_BYTES


def ring_cycles(width, height, planes):
    rows = planes * (2 * height + 2 + 4)
    return 8 * SIGNAL / 2 + NOC_LATENCY + rows * READ_INSTRUCTIONS * CORE + NOC_LATENCY + STEP_OVERHEAD


def request(pack_speed=PACK):
    """Name and microseconds of each step, in order."""
    steps = [("rules and doorbell", PCIE_LATENCY)]
    frame = TILES * 44 * 192 / PCIE_BYTES + PCIE_LATENCY
    steps.append(("frame to the tiles", frame))
    steps.append(("3 x 3 neighbourhoods", (IMAGE * CORE + STEP_OVERHEAD) / CLOCK))
    for name, layer in LAYERS.items():
        cycles = layer_cycles(pack_speed, *layer)
        if name in STREAMED:
            units = stream_cycles(*layer[3:6])
            cycles = max(cycles, units) + layer[4] * (STEP_OVERHEAD + SIGNAL)
            if name == "4a":
                cycles += DRAM_LATENCY
        steps.append((name, cycles / CLOCK))
        if name in RINGS:
            steps.append((f"ring after {name.split(',')[0]}", ring_cycles(*RINGS[name]) / CLOCK))
        if name == "score b, 1":
            steps.append(("softmax", (SCORES * CORE + STEP_OVERHEAD) / CLOCK))
            steps.append(("ring of scores", ring_cycles(64, 40, 1) / CLOCK))
            steps.append(("keypoints", (KEYPOINTS * CORE + STEP_OVERHEAD) / CLOCK))
    steps.append(("descriptors to the host", TILES * 40 * 256 * 2 / PCIE_BYTES + PCIE_LATENCY))
    steps.append(("end seen by the host", PCIE_LATENCY))
    return steps


def main():
    steps = request()
    total = sum(microseconds for _, microseconds in steps)
    for name, microseconds in steps:
        print(f"{name:<26}{microseconds:8.1f} us {microseconds / total:7.1%}")
    print(f"{'a request':<26}{total:8.1f} us")
    print(f"{'the same, slow packing':<26}{sum(slow for _, slow in request(SLOW_PACK)):8.1f} us")
    print("the old system, published: 2.8 ms for the network at first, 0.90-0.96 ms a request at last, 1.08 ms in Python")


if __name__ == "__main__":
    main()
