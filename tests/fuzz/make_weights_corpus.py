# SPDX-License-Identifier: Apache-2.0
"""Makes corpus/safetensors and corpus/config: small good and bad files to start fuzzing from.

Run by hand in this folder; needs numpy and the `safetensors` package, which writes the good files.
"""
import json
import struct
from pathlib import Path

import numpy as np
from safetensors.numpy import save

HERE = Path(__file__).parent / "corpus"


def raw(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


a = np.arange(2, dtype=np.float32)
good = save({"a": a, "b": np.ones((2, 2), np.uint8)}, metadata={"license": "MIT"})
SAFETENSORS = {
    "good": good,
    "f16": save({"weight": np.ones((1, 2, 1, 1), np.float16)}),
    "scalar": save({"a": np.array(1, np.float32)}),
    "empty": save({}),
    "empty-tensor": save({"a": np.zeros((0, 3), np.float32)}),
    "superpoint-name": save({"encoder.conv_blocks.0.conv_a.weight": np.ones((64, 1, 3, 3), np.float32)[:1]}),
    "truncated": good[:-3],
    "more": good + b"\0",
    "no-header": b"\x02\0\0\0\0\0\0\0",
    "huge-length": raw({"a": tensor()}, bytes(8), 2**64 - 1),
    "long-length": raw({"a": tensor()}, bytes(8), 500),
    "zip": b"PK\x03\x04" + bytes(30),
    "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "overlap": raw({"a": tensor(), "b": tensor()}, bytes(8)),
    "hole": raw({"a": tensor(offsets=(4, 12))}, bytes(12)),
    "twice": raw(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "overflow": raw({"a": tensor(shape=(2**32, 2**32))}, bytes(8)),
    "negative": raw({"a": tensor(offsets=(-8, 0))}, bytes(8)),
    "unknown-type": raw({"a": tensor("Q4")}, bytes(8)),
    "deep": raw(b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"),
    "metadata-number": raw({"__metadata__": {"a": 1}}),
    "quotes": raw(b"{'a':1}"),
    "zero-byte": raw(b'{"a\0":1}'),
}
CONFIG = {
    "good": b'{"model_type": "superpoint", "border_removal_distance": 4, "encoder_hidden_sizes": [64, 64, 128, 128],'
            b' "decoder_hidden_size": 256, "keypoint_decoder_dim": 65, "descriptor_decoder_dim": 256}\n',
    "empty": b"",
    "empty-object": b"{}",
    "border-0": b'{"border_removal_distance":0}',
    "border-241": b'{"border_removal_distance":241}',
    "border-real": b'{"border_removal_distance":4.0}',
    "border-null": b'{"border_removal_distance":null}',
    "border-large": b'{"border_removal_distance":99999999999999999999999}',
    "other-model": b'{"model_type":"superglue"}',
    "other-sizes": b'{"encoder_hidden_sizes":[64,64,"x",{}]}',
    "array": b"[1,2]",
    "trailing": b'{"a":1,}',
    "nan": b'{"a":NaN}',
    "escapes": b'{"\\u0061\\ud83d\\ude00\\n":"\\\\\\"","b":"\xc3\xa4"}',
    "bad-utf8": b'{"a":"\xff"}',
    "longer-utf8": b'{"a":"\xc0\x80\xed\xa0\x80"}',
    "surrogates": b'{"\\ud800":"\\ude00\\ud83d\\u0041"}',
    "deep": b'{"a":' + b'{"a":' * 40 + b"1" + b"}" * 41,
    "numbers": b'{"a":[-0,1e5,-1.5E-3,0.1]}',
}
for folder, files in (("safetensors", SAFETENSORS), ("config", CONFIG)):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (HERE / folder / name).write_bytes(content)
