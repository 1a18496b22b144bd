#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a request should take on a Blackhole card, from documented and published figures. No figure of the card was
measured by this project, which has none; those of the host were.

    bench/blackhole_model.py [--json | --constants]

It follows the program that src/blackhole/plan.c makes: each of 12 x 10 tiles has a block of 64 x 40 pixels, and its
steps come one after the other. Every constant below has its source. Where two sources differ, or a cost may or may not
be hidden, there are two values: `best` and `worst`; each constant is what its source says, and none was fitted.

What is not in the model: waiting of tiles for slower neighbours beyond the slowest tile's own work, clocks that are
lowered to save power, congestion of the NoC, and instruction fetch.
"""
import argparse
import json
import math
from dataclasses import dataclass

# ---- Constants -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constant:
    best: float
    worst: float
    unit: str
    source: str


MICROBENCH = "boopdotpng/blackhole-py, docs/{}-microbench.md, measured on a p100a at 1350 MHz"
COUNTED = "counted on the simulator (tests/blackhole/count_steps) or in the compiled code of src/blackhole/kernels"

HOST_MEASURED = ("bench/blackhole_host, hpatches_v_dogman_1 with threshold 0, median of 501 on one core of a busy machine "
                 "of two (Zen 4, AVX-512); worst: what the card leaves is in no cache")

CONSTANTS = {
    "clock": Constant(1350, 1350, "MHz", "tt-umd, blackhole_implementation.hpp, AICLK_BUSY_VAL"),
    "mvmul": Constant(1, 27 / 16, "cycles", "an 8x16 by 16x16 product a cycle: tt-metal, tech_reports/matrix_engine; "
                      "worst: 27 cycles for 16, with the unit drained behind them, as in "
                      + MICROBENCH.format("math-backend")),
    "push": Constant(1, 1, "cycles", "an instruction pushed to a Tensix thread: " + MICROBENCH.format("tensix-instr")),
    "unpack": Constant(2048 / 12.43, 2048 / 13.54, "bytes/cycle",
                       "12.43 to 13.54 cycles for a tile of 2 KiB, both unpackers at work: "
                       + MICROBENCH.format("unpack-backend")),
    "unpack_issue": Constant(16, 16, "cycles", "instructions of thread T0 for a step with one run of pixels; " + COUNTED),
    "unpack_run": Constant(4, 4, "cycles", "and for each further run; " + COUNTED),
    "sfpu": Constant(1, 1, "cycles", "an instruction of 32 lanes; tt-isa-documentation, VectorUnit.md"),
    "pack": Constant(2048 / 16, 2048 / 39, "bytes/cycle", "16 cycles for a tile of 2 KiB, the packer measured alone by the "
                     "vendor: tt-metal issue 51901 (perf_pack_dest_bank); worst: 39, in a conversion of layout, tt-llk issue "
                     "130"),
    "pack_rows": Constant(11, 11, "cycles", "instructions of thread T2 before the packs of a run; " + COUNTED + "; 9.13 for "
                          "each call in tt-metal issue 51901"),
    "pack_wait": Constant(0, 40, "cycles", "until the packer is done with the run before, whose address must stay; best: "
                          "hidden; worst: an assumption, for want of a figure for the depth of its pipeline"),
    "step": Constant(250, 400, "cycles", "core B configures and starts a step and sees its end: about 250 instructions; how "
             "long it waits in between is an assumption"),
    "risc": Constant(1, 1, "cycles", "an instruction of a RISC-V core: " + MICROBENCH.format("riscv-core")),
    "load_use": Constant(4, 7, "cycles", "a load from L1 whose result is used at once takes 5 instead of 1 cycle: "
                         + MICROBENCH.format("riscv-memory") + "; 8 in tt-isa-documentation, BabyRISCV/README.md"),
    "fp_wait": Constant(1, 1, "cycles", "a sum or product that is used by the next instruction: BabyRISCV/README.md, EX2"),
    "mispredict": Constant(0, 4, "cycles", "a branch that went the other way: BabyRISCV/README.md, EX1; best: all are "
                           "foreseen"),
    "image": Constant(18555, 18555, "instructions", "of a core for its quarter of a block's neighbourhoods; " + COUNTED),
    "image_loads": Constant(11 * 3 * 5, 11 * 68, "loads", "of it that are waited for: one in each line of 16 bytes, which "
                            "the core's cache holds (BabyRISCV/README.md), of 3 rows for each of 11; worst: one in each "
                            "column"),
    "scores": Constant(20895, 20895, "instructions", "of a core for the softmax of its quarter of a block; " + COUNTED),
    "scores_loads": Constant(10 * 17, 10 * 65, "loads", "of it that are waited for: one in each line; worst: each logit"),
    "scores_fp": Constant(640, 640, "waits", "for a sum or product, one for each score; " + COUNTED),
    "keypoints": Constant(5134, 12225, "instructions", "of the slowest core of the busiest tile with radius 4 and threshold "
                          "0.005, for the CPU's scores of 5 photos: fewest and most; " + COUNTED),
    "keypoints_four": Constant(11, 11, "instructions", "of those for four scores in a line, with one wait and one branch; "
                               + COUNTED),
    "noc_read": Constant(20, 25, "cycles", "issue of a read by core B: 20 instructions, " + COUNTED + "; worst: "
                         + MICROBENCH.format("noc")),
    "noc_latency": Constant(231, 481, "cycles", "a read or write of a neighbour, 4 to 256 bytes: "
                            + MICROBENCH.format("noc") + "; worst: 16 KiB, noc-mcast-mixed"),
    "noc_signal": Constant(195, 233, "cycles", "an atomic increment at a neighbour, with its response: "
                           + MICROBENCH.format("noc-mcast-mixed")),
    "multicast": Constant(16384 / 350.75, 16384 / 532.75, "bytes/cycle", "16 KiB to a row of tiles: "
                          + MICROBENCH.format("noc-mcast-mixed")),
    "pcie": Constant(63.0 * 0.77, 31.5 * 0.77, "GB/s", "PCIe 5.0 x16 carries 63 GB/s, 4.0 x16 31.5; of that, reads from "
                     "the host reach 77 % (tt-metal #23559)"),
    "pcie_latency": Constant(1.0, 2.0, "us", "an assumption, for want of a figure for this card"),
    "host_frame": Constant(11.7, 28.7, "us", "the frame into pinned memory, and the lists out of it; " + HOST_MEASURED),
    "host_order": Constant(17.3, 20.3, "us", "lns_order_keypoints(), 1,758 keypoints to 1,024; " + HOST_MEASURED),
    "host_sample": Constant(229.7, 589.6, "us", "lns_sample_blocks(), 1,024 descriptors; " + HOST_MEASURED),
}

PUBLISHED = [
    ("old system, first forward pass", 2.8, "Tenstorrent, superpoint-p150"),
    ("old system, 480x640 request, at last", 0.90, "the same, e2e_kpc_u8: 0.90 to 0.96 ms"),
    ("old system, 480x640 plane through its Python API", 1.08, "the same"),
]
TARGET_MS = 0.65

# ---- The program of a tile -------------------------------------------------------------------------------------------

BLOCK_WIDTH, BLOCK_HEIGHT, CELLS = 64, 40, 40
CHANNELS, JOB_PIXELS, JOB_BLOCKS, PIXEL_BYTES = 16, 64, 4, 32


@dataclass(frozen=True)
class Layer:
    name: str
    inputs: int
    outputs: int
    kernel: int
    width: int  # pixels that are computed, before pooling
    height: int
    pool: bool = False
    phases: int = 3
    rounded: bool = False  # its outputs, to what two phases use of them
    streamed: bool = False
    float32: bool = False

    @property
    def steps(self):
        """Steps of 16 input channels: of each tap, and one for the bias. The first layer has two."""
        return 2 if self.inputs == 1 else self.kernel**2 * self.inputs // CHANNELS + 1

    @property
    def cut(self):
        """Columns and rows of a job."""
        columns = min(self.width, JOB_PIXELS)
        if self.pool and columns == JOB_PIXELS:
            columns //= 2
        return columns, min(JOB_PIXELS // columns, self.height)

    @property
    def jobs(self):
        columns, rows = self.cut
        return math.ceil(self.width / columns) * math.ceil(self.height / rows)

    @property
    def groups(self):
        """Blocks of output channels in each round over the jobs."""
        blocks = math.ceil(self.outputs / CHANNELS)
        return [min(JOB_BLOCKS, blocks - first) for first in range(0, blocks, JOB_BLOCKS)]

    @property
    def mvmuls(self):
        """In one phase."""
        columns, rows = self.cut
        return sum(blocks * columns * rows // 8 for blocks in self.groups) * self.jobs * self.steps

    @property
    def weight_bytes(self):
        return sum(self.groups) * self.steps * CHANNELS * CHANNELS * 2


LAYERS = [
    Layer("conv1a", 1, 64, 3, (BLOCK_WIDTH + 2) * (BLOCK_HEIGHT + 2), 1, phases=4, rounded=True),
    Layer("conv1b", 64, 64, 3, 64, 40, pool=True, phases=2),
    Layer("conv2a", 64, 64, 3, 32, 20),
    Layer("conv2b", 64, 64, 3, 32, 20, pool=True),
    Layer("conv3a", 64, 128, 3, 16, 10),
    Layer("conv3b", 128, 128, 3, 16, 10, pool=True),
    Layer("conv4a", 128, 128, 3, 8, 5, streamed=True),
    Layer("conv4b", 128, 128, 3, 8, 5, streamed=True),
    Layer("descriptor a", 128, 256, 3, 8, 5, streamed=True),
    Layer("descriptor b", 256, 256, 1, 8, 5, streamed=True),
    Layer("score a", 128, 256, 3, 8, 5, streamed=True),
    Layer("score b", 256, 65, 1, 8, 5, streamed=True, float32=True),
]
# After which layer the ring of its output is fetched: planes and height of the output.
RINGS = {"conv1b": (4, 20), "conv2a": (4, 20), "conv2b": (4, 10), "conv3a": (8, 10), "conv3b": (8, 5), "conv4a": (8, 5),
         "conv4b": (8, 5)}


class Model:
    """Costs in cycles with the `best` or the `worst` constants, but for those of `instead`."""

    def __init__(self, case, instead):
        self.constants = {name: getattr(constant, case) for name, constant in CONSTANTS.items()} | instead

    def __getitem__(self, name):
        return self.constants[name]

    def us(self, cycles):
        return cycles / self["clock"]

    def group(self, layer, blocks):
        """What each unit takes for one job with `blocks` blocks of outputs."""
        columns, rows = layer.cut
        pixels = columns * rows
        step_bytes = blocks * CHANNELS * CHANNELS * 2 + pixels * PIXEL_BYTES
        matrix = layer.steps * (layer.phases * (pixels // 8 * blocks * self["mvmul"] + self["push"]) + self["push"])
        issue = layer.steps * (self["unpack_issue"] + (rows - 1) * self["unpack_run"]) if layer.inputs > 1 else \
            layer.steps * self["unpack_issue"]
        return {
            "matrix": matrix,
            "unpack": layer.steps * step_bytes / self["unpack"],
            "issue": issue,
            "pack": self.pack(layer, blocks, pixels, rows),
        }

    def pack(self, layer, blocks, pixels, rows):
        """Rounding takes 3 instructions for 32 numbers, pooling 2 x 49 for each 64 pixels of 16 channels."""
        if layer.pool:
            vector, out_pixels, runs = 2 * blocks * 49, pixels // 4, max(rows // 2, 1)
        else:
            vector = 3 * pixels * blocks * CHANNELS // 32 if layer.rounded else 0
            out_pixels, runs = pixels, rows if layer.inputs > 1 else 1
        size = out_pixels * blocks * CHANNELS * (4 if layer.float32 else 2)
        return vector * self["sfpu"] + runs * blocks * (self["pack_rows"] + self["pack_wait"]) + size / self["pack"]

    def layer(self, layer):
        """Cycles of a layer, and the unit that decides: the units work on different jobs at the same time, and the
        first job has to be unpacked and the last one packed by itself."""
        total = {"matrix": 0, "unpack": 0, "issue": 0, "pack": 0}
        for blocks in layer.groups:
            for unit, cycles in self.group(layer, blocks).items():
                total[unit] += cycles * layer.jobs
        unit = max(total, key=total.get)
        one = self.group(layer, layer.groups[0])
        ends = one["pack"] + max(one["unpack"], one["issue"]) / layer.steps
        return total[unit] + ends, unit

    def streamed(self, layer):
        """Units of 64 outputs, while the weights of the next one come: whichever takes longer."""
        compute, unit = self.layer(layer)
        stream = layer.weight_bytes / self["multicast"]
        return (compute, unit) if compute >= stream else (stream, "weights")

    def ring(self, planes, height, size=1):
        """Signals to 8 neighbours, then a read for each run of pixels: of `size` rows above and below with their corners,
        and of each row at both sides. The first waits for the neighbours' signals."""
        reads = planes * (2 * size * 3 + 2 * height)
        return 8 * self["noc_read"] + self["noc_signal"] + reads * self["noc_read"] + self["noc_latency"]

    def image(self):
        return self["image"] * self["risc"] + self["image_loads"] * self["load_use"]

    def scores(self):
        waits = self["scores_loads"] * self["load_use"] + self["scores_fp"] * self["fp_wait"]
        return self["scores"] * self["risc"] + waits

    def keypoints(self):
        fours = self["keypoints"] / self["keypoints_four"]
        return self["keypoints"] * self["risc"] + fours * (self["load_use"] + self["mispredict"])

    def host(self, size):
        """Bytes of all tiles over PCIe."""
        return (size / self["pcie"] * 1e-3 + self["pcie_latency"]) * self["clock"]


def frame_bytes():
    return 120 * BLOCK_HEIGHT * BLOCK_WIDTH


def descriptor_bytes():
    """In bfloat16."""
    return 120 * CELLS * 256 * 2


HOST = ("host: frame and lists", "host: order", "host: sample")
REST = "rest of the descriptors' way"
DESCRIPTORS = ("descriptor a", "descriptor b", REST, "host: sample")


def layers(model):
    """The layers' rows, with what stands between them."""
    for layer in LAYERS:
        cycles, unit = model.streamed(layer) if layer.streamed else model.layer(layer)
        yield layer.name, cycles, unit
        if layer.name in RINGS:
            yield f"ring of {layer.name}", model.ring(*RINGS[layer.name]), "NoC"


def breakdown(case, instead):
    """Rows of (step, cycles, what decides)."""
    model = Model(case, instead)
    rows = [("doorbell", model.host(0), "PCIe"), ("frame from the host", model.host(frame_bytes()), "PCIe"),
            ("ring of the frame", model.ring(1, BLOCK_HEIGHT, 2), "NoC"), ("neighbourhoods", model.image(), "RISC-V"),
            *layers(model), ("softmax", model.scores(), "RISC-V"), ("ring of scores", model.ring(1, BLOCK_HEIGHT, 8), "NoC"),
            ("keypoints", model.keypoints(), "RISC-V")]
    # Descriptors go to the host, on the other NoC, while scores are computed and looked through.
    after = [name for name, _, _ in rows].index("descriptor b") + 1
    meanwhile = sum(cycles for _, cycles, _ in rows[after:])
    rows.append((REST, max(0.0, model.host(descriptor_bytes()) - meanwhile), "PCIe"))
    rows.append(("end seen by the host", model.host(0), "PCIe"))
    # Core B begins each step and waits for its end; a ring is three of them.
    steps = sum(3 if name.startswith("ring") else 1 for name, _, _ in rows) + sum(len(layer.groups) - 1 for layer in LAYERS)
    rows.append(("beginnings and ends", steps * model["step"], "RISC-V"))
    for name, constant in zip(HOST, ("host_frame", "host_order", "host_sample")):
        rows.append((name, model[constant] * model["clock"], "CPU"))
    return model, rows


# 1,316 cycles for 2 KiB are the body of a matrix multiplication's packing thread, with its waiting for buffers and a
# synchronisation of the core for each tile, which are not done here.
SLOW_PACKER = {"pack": 2048 / 1316, "pack_wait": 0}
SLOW_SOURCE = MICROBENCH.format("pack-backend")


def total_us(case, without=(), instead=None):
    model, rows = breakdown(case, instead or {})
    return model.us(sum(cycles for name, cycles, _ in rows if name not in without))


def mvmul_us(tiles=120):
    """The products alone, spread evenly, as many tiles as there are."""
    products = sum(layer.mvmuls * layer.phases for layer in LAYERS) * 120 / tiles
    return products / CONSTANTS["clock"].best


# ---- Output ----------------------------------------------------------------------------------------------------------


def print_table():
    best, best_rows = breakdown("best", {})
    worst, worst_rows = breakdown("worst", {})
    between, between_rows = breakdown("worst", SLOW_PACKER)
    print(f"{'step':30}{'best us':>10}{'worst us':>10}{'*':>10}  decided by")
    for (name, low, unit), (_, high, other), (_, mid, _) in zip(best_rows, worst_rows, between_rows):
        print(f"{name:30}{best.us(low):10.1f}{worst.us(high):10.1f}{between.us(mid):10.1f}  "
              f"{unit if unit == other else unit + ' / ' + other}")
    for name, without in (("request", ()), ("  on the card", HOST), ("  without descriptors", DESCRIPTORS)):
        print(f"{name:30}{total_us('best', without):10.1f}{total_us('worst', without):10.1f}"
              f"{total_us('worst', without, SLOW_PACKER):10.1f}")
    print(f"*: worst, and 1,316 cycles to pack 2 KiB, with all that is waited for in a matrix multiplication ({SLOW_SOURCE})")
    print(f"products alone: {mvmul_us():.1f} us, MVMUL at one a cycle on 120 tiles")
    print(f"target: {TARGET_MS * 1e3:.0f} us for a request")
    for name, ms, source in PUBLISHED:
        print(f"published: {name}: {ms * 1e3:.0f} us ({source})")


def print_constants():
    for name, c in CONSTANTS.items():
        value = f"{c.best:g}" if c.best == c.worst else f"{c.best:.4g} to {c.worst:.4g}"
        print(f"{name} = {value} {c.unit}: {c.source}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--constants", action="store_true", help="the constants with their sources")
    arguments = parser.parse_args()
    if arguments.constants:
        print_constants()
    elif arguments.json:
        cases = {case: [{"step": n, "us": breakdown(case, {})[0].us(c), "decided_by": u}
                        for n, c, u in breakdown(case, {})[1]] for case in ("best", "worst")}
        print(json.dumps({"target_us": TARGET_MS * 1e3, "best_us": total_us("best"), "worst_us": total_us("worst"),
                          "card_best_us": total_us("best", HOST), "card_worst_us": total_us("worst", HOST),
                          "slow_packer_us": total_us("worst", (), SLOW_PACKER),
                          "card_slow_packer_us": total_us("worst", HOST, SLOW_PACKER),
                          "mvmul_us": mvmul_us(), "steps": cases}))
    else:
        print_table()


if __name__ == "__main__":
    main()
