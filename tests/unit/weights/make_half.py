# SPDX-License-Identifier: Apache-2.0
"""Makes half_golden.h: all 65536 values of float16 (by NumPy) and bfloat16 (by PyTorch) as float32.

Run by hand: python make_half.py > half_golden.h
"""
import numpy as np
import torch

STEP = 97


def fnv1a(words):
    value = 0xCBF29CE484222325
    for byte in words.astype("<u4").tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def table(name, words):
    print(f"static const uint64_t {name}_hash = UINT64_C(0x{fnv1a(words):016x});")
    print(f"static const uint32_t {name}_samples[] = {{")
    samples = [f"0x{word:08x}" for word in words[::STEP]]
    for start in range(0, len(samples), 8):
        print("    " + ", ".join(samples[start:start + 8]) + ",")
    print("};\n")


every = np.arange(65536, dtype=np.uint16)
half = every.view(np.float16).astype(np.float32).view(np.uint32)
bfloat = torch.from_numpy(every.view(np.int16).copy()).view(torch.bfloat16).float().numpy().view(np.uint32)

print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Made by make_half.py: bits of float32 for all 65536 values, hashed (FNV-1a over little-endian words), and")
print(f" * every {STEP}th of them. */")
print("#include <stdint.h>\n")
print(f"#define GOLDEN_STEP {STEP}\n")
table("half", half)
table("bfloat", bfloat)
