# SPDX-License-Identifier: Apache-2.0
"""Makes corpus/request, corpus/query and corpus/base64: small requests to start fuzzing from. Run by hand in this folder."""
from pathlib import Path

HERE = Path(__file__).parent / "corpus"
REQUEST = {
    "good": b'{"image":"iVBORw0KGgo=","max_keypoints":100,"keypoint_threshold":0.01,"nms_radius":4,"return_descriptors":false}',
    "strings": b'{"image":"QUJD","max_keypoints":" 1_0.0 ","keypoint_threshold":" .5e-1","nms_radius":"+4","return_descriptors":"Yes"}',
    "numbers": b'{"image":"QQ==","max_keypoints":1E2,"keypoint_threshold":1e400,"nms_radius":99999999999999999999,"return_descriptors":1.0}',
    "literals": b'{"image":null,"max_keypoints":NaN,"keypoint_threshold":-Infinity,"nms_radius":[],"return_descriptors":{}}',
    "missing": b'{"other":[1.5,{"a":"\\u00e4\\ud83d\\ude00\\n"},-0,true],"other":2,"b":[[]]}',
    "surrogates": b'{"image":"\\ud800","max_keypoints":"\xed\xa0\x80"}',
    "escapes": b'{"im\\u0061ge":"\\/9j\\/4AAQ"}',
    "utf-16": '{"image":"QUJD"}'.encode("utf-16"),
    "utf-16-be": '{"image":"\u20ac"}'.encode("utf-16-be"),
    "utf-32": '{"image":"\U0001f600"}'.encode("utf-32"),
    "bom": b'\xef\xbb\xbf{"image":"a"}',
    "bad-utf8": b'{"image":"\xff"}',
    "array": b"[1,2]",
    "open": b'{"a":[{"b":',
    "comma": b'{"image":"a",}',
    "deep": b"[" * 1100,
    "long-integer": b'{"image":"a","max_keypoints":' + b"9" * 4301 + b"}",
    "empty": b"",
}
QUERY = {
    "good": b"height=480&width=640&max_keypoints=100&keypoint_threshold=0.01&nms_radius=4&return_descriptors=false",
    "escapes": b"max_keypoints=%205&keypoint_threshold=+.5&nms_radius=%2B4&return_descriptors=%59es",
    "repeated": b"max_keypoints=1&max_keypoints=x&&=&height=0&width=8193",
    "replaced": b"max_keypoints=%ff%e2%82%f0%9f%98%80%zz%&nms_radius=\xe9%00",
    "numbers": b"height=1_0.0&width=99999999999999999999&keypoint_threshold=-inf&max_keypoints=-2",
    "empty": b"",
}
BASE64 = {
    "good": b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==",
    "one-padding": b"QUI=",
    "surplus": b"QUJD==",
    "none": b"QUJ",
    "leading": b"=QUJD",
    "decodes-to-equals": b"PUJDPUJD",
    "inside": b"QU=JD",
    "newline": b"QUJD\n",
    "url": b"QU-_",
    "utf8": b"QUJD\xc3\xa4",
}
for folder, files in (("request", REQUEST), ("query", QUERY), ("base64", BASE64)):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (HERE / folder / name).write_bytes(content)
