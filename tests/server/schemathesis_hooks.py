# SPDX-License-Identifier: Apache-2.0
"""What schemathesis cannot know from /openapi.json: which bytes are an image, and how many are a plane.

    SCHEMATHESIS_HOOKS=schemathesis_hooks schemathesis run http://127.0.0.1:20000/openapi.json    (in this folder)
"""
import base64
import struct
import zlib

import schemathesis
from hypothesis import strategies


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, seed):
    """A gray PNG with a coarse pattern."""
    rows = b"".join(
        b"\0" + bytes((x // 8 * 37 + y // 8 * 91 + seed) % 7 * 40 for x in range(width)) for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


IMAGES = [png(1, 1, 0), png(64, 48, 1), png(160, 120, 2), png(33, 200, 3)]

BASE64_IMAGES = [base64.b64encode(image).decode() for image in IMAGES]
schemathesis.openapi.format("byte", strategies.sampled_from(BASE64_IMAGES))


FIELDS = {"max_keypoints", "keypoint_threshold", "nms_radius", "return_descriptors"}
BOOLEAN_WORDS = {"0", "1", "f", "t", "n", "y", "no", "yes", "off", "on", "false", "true"}


def is_read_leniently(name, value):
    """Whether the server reads a value of another type than the declared one, as the server before it did."""
    if name == "return_descriptors":
        return value in (0, 1) if isinstance(value, (int, float)) else str(value).lower() in BOOLEAN_WORDS
    if isinstance(value, str):
        try:
            float(value.replace("_", ""))
        except ValueError:
            return False
        return True
    return isinstance(value, bool)


def make_acceptable(case):
    """Gives a request with good parameters a body that goes with them."""
    if case.operation.path == "/predict_raw":
        case.body = IMAGES[-1]
    elif case.operation.path == "/predict_plane":
        case.body = bytes(int(case.query["height"]) * int(case.query["width"]))
    elif case.operation.path == "/predict" and case.body["image"] not in BASE64_IMAGES:
        case.body["image"] = BASE64_IMAGES[0]


def make_refusable(case):
    """Takes out what the document does not declare but the server reads all the same."""
    if case.operation.path == "/predict" and isinstance(case.body, dict):
        for name in case.body.keys() & FIELDS:
            if is_read_leniently(name, case.body[name]):
                case.body[name] = []
    if case.query and is_read_leniently("return_descriptors", case.query.get("return_descriptors")):
        case.query["return_descriptors"] = "perhaps"


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.operation.path.startswith("/predict"):
        return
    if case.meta.generation.mode.is_positive:
        make_acceptable(case)
    else:
        make_refusable(case)
