# SPDX-License-Identifier: Apache-2.0
"""Makes request_cases.txt: what FastAPI answers to bodies and queries of the routes of the server.

Run by hand in this folder, with fastapi 0.141.1, pydantic 2.13.4 and starlette 0.47.3. A line is KIND (body, raw, plane),
INPUT with %XX for bytes that are not plain, and RESULT: "=FIELDS", the body of an error, or "400" where FastAPI fails with
500 because it cannot show what it received.
"""
import asyncio
import json
import random

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

random.seed(2)
PLAIN = set(range(0x21, 0x7F)) - {ord("%")} | {0x20}
app = FastAPI()


def plain(data):
    return "".join(chr(b) if b in PLAIN else "%%%02X" % b for b in data)


def fields(maximum, threshold, radius, descriptors, rest):
    return PlainTextResponse("=%d %r %d %d %s" % (maximum, threshold, radius, descriptors, rest))


class Body(BaseModel):
    image: str = Field(...)
    max_keypoints: int = Field(1024, ge=-1, le=307200)
    keypoint_threshold: float = Field(0.005, ge=0.0, le=1.0)
    nms_radius: int = Field(4, ge=0, le=32)
    return_descriptors: bool = True


@app.exception_handler(RequestValidationError)
async def refuse(_request: Request, error: RequestValidationError):
    return JSONResponse(status_code=400, content={"detail": error.errors()})


@app.post("/body")
async def body(b: Body):
    return fields(b.max_keypoints, b.keypoint_threshold, b.nms_radius, b.return_descriptors,
                  plain(b.image.encode("utf-8", "surrogatepass")))


@app.post("/raw")
async def raw(max_keypoints: int = Query(1024, ge=-1, le=307200), keypoint_threshold: float = Query(0.005, ge=0.0, le=1.0),
              nms_radius: int = Query(4, ge=0, le=32), return_descriptors: bool = Query(True)):
    return fields(max_keypoints, keypoint_threshold, nms_radius, return_descriptors, "")


@app.post("/plane")
async def plane(height: int = Query(..., ge=1, le=8192), width: int = Query(..., ge=1, le=8192),
                max_keypoints: int = Query(1024, ge=-1, le=307200), keypoint_threshold: float = Query(0.005, ge=0.0, le=1.0),
                nms_radius: int = Query(4, ge=0, le=32), return_descriptors: bool = Query(True)):
    return fields(max_keypoints, keypoint_threshold, nms_radius, return_descriptors, "%dx%d" % (height, width))


async def ask(path, query, content):
    sent = []

    async def receive():
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": path,
             "raw_path": path.encode(), "query_string": query, "headers": [(b"content-type", b"application/json")],
             "client": ("x", 1), "server": ("x", 1), "root_path": ""}
    await app(scope, receive, send)
    return b"".join(m.get("body", b"") for m in sent).decode()


def answer(kind, content):
    try:
        return asyncio.run(ask("/" + kind, b"" if kind == "body" else content, content if kind == "body" else b""))
    except (ValueError, UnicodeEncodeError):
        return "400"


INTEGERS = ["5", " 5 ", "+5", "-0", "00005", "5_0", "5.00", "1_000.0", "-1", "-2", "0", "32", "33", "307200", "307201", "8192", "8193", "5.5",
            "5.", ".0", "5_", "_5", "5__0", "+ 5", "5.0e0", "1e1", "0x5", "", "abc", "True", "\u0665", "1" * 20, "-" + "1" * 20, "9223372036854775807",
            "9223372036854775808", "-9223372036854775809", "\u00a05\u3000", "\u200b5", "\x1c5", "\x855", "5\x00", "+-5", "--5", "-", "+", "5_.0",
            "5._0", "5.0_0", "0_5.0", "-00.0", "1_0_0", "\u20285\u2029", "\u180e5", "\u16805\u205f", "5\u202f", "5.0.0", "\uff15", "0_0", "5 5", "+_5"]
FLOATS = ["0.5", ".5", "1.", "+0.5", "1e-3", "0.5_0", "nan", "NaN", "-nan", "inf", "-INF", "infinity", "-Infinity", "infinit", "abc", "", "true",
          "0x1p-1", "0,5", "1_.5", "0_.5", "._5", "1e_3", "1e-_3", "_1", "1_", "1__0", "in_f", ".", "e5", "1e", "1e+", "+", "-", "1e400", "-1e400",
          "1e-400", "-1e-400", "1d0", "0.5f", "0.5\x00", "0", "-0", "-0.0", "1", "2", "1.0000000000000002", "0.1e1", "\u00a0.5\u2003", " 0.5_0", "0.5_0 ", "\x1c.5", "0 .5",
          "+ .5", "--.5", "00.5", "0.5.5", "1e-320", "5e-324", "0.1234567890123456789", "nan(1)", "-5e-324", "1E0", "0.3e-0", "1e0.5", "\u0661"]
BOOLEANS = ["true", "True", "TRUE", "t", "T", "yes", "y", "on", "1", "false", "f", "no", "N", "off", "OFF", "0", "maybe", "", " true", "2", "1.0", "00",
            "tr\u00fce", "enable", "\uff34"]
JSON = ["null", "true", "false", "[]", "{}", "[1,{\"a\":null}]", "0", "1", "2", "-1", "5.0", "1E2", "-1.0", "5.5", "1e400", "-1e400", "NaN", "Infinity",
        "-Infinity", "1e300", "1e18", "9.3e18", "9223372036854774784.0", "-9223372036854775808.0", "9223372036854775808.0", "1" * 20, "-" + "1" * 20,
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "2e308", "1" * 310, "-0", "-0.0",
        "0.0", "1.0", "2.0", "0.5", "1.0000001", "1e-320", "1e-5", "0.0001", "1e16", "123456789.125", "307200", "307201", "32", "33",
        "\"\\ud800\"", "\"5\\udfff\"", "\"\\u0035\"", "\"\\u00e4\\n\\\"\\\\\"", "{\"x\":1,\"y\":[],\"x\":2}"]
NAMES = ["max_keypoints", "keypoint_threshold", "nms_radius", "return_descriptors"]
OF_NAME = {"max_keypoints": INTEGERS, "keypoint_threshold": FLOATS, "nms_radius": INTEGERS, "return_descriptors": BOOLEANS}
ALL = list(dict.fromkeys(INTEGERS + FLOATS + BOOLEANS))


def escaped(text):
    """For a query, with a few characters as they are or escaped without need."""
    out = b""
    for byte in text.encode():
        if byte == 0x20:
            out += random.choice([b"+", b"%20"])
        elif byte >= 0x80 or chr(byte) in "&+%#;" or byte < 0x20 or random.randrange(20) == 0:
            out += b"%%%02x" % byte
        else:
            out += bytes([byte])
    return out


def body_of(pairs):
    return ("{" + ",".join('"%s":%s' % pair for pair in pairs) + "}").encode("utf-8", "surrogatepass")


cases = []
for content in [b"", b"null", b"[]", b'"abc"', b"1", b"true", b"1.50", b"NaN", b"{}", b"{", b'{"image":"a"} x', b"{'image':'a'}", b'{"image":"\xff"}',
                b'\xef\xbb\xbf{"image":"a"}', '{"image":"QUJD"}'.encode("utf-16"), b'{"image":"a","image":"b"}', b'{"image":"a","image":1}',
                b'{"max_keypoints": -5, "nms_radius": 40}', b'{"max_keypoints":1,"x":[1.50,{"y":"\\u00e4","y":1E2}],"max_keypoints":2}',
                b'{"image":"\\/9j\\/4AAQ"}', b'{"image":"\\ud800"}', b'{"Image":"a"}', b'{"im\\u0061ge":"a"}', b'{"image":"a\\u0000b"}',
                b'{"image":"a","max_keypoints":007}', b'{"image":123}', b'{"image":null}', b'{"image":[]}', b'{"image":{}}', b'{"image":1.5}', b'"\\q"']:
    cases.append(("body", content))
for query in [b"", b"max_keypoints", b"max_keypoints=", b"foo=1", b"MAX_KEYPOINTS=1", b"max_keypoints=1;nms_radius=3", b"max_keypoints=1&max_keypoints=2",
              b"max_keypoints=x&nms_radius=99", b"&&max_keypoints=7&&", b"max%5fkeypoints=7", b"max_keypoints=%zz", b"max_keypoints=%", b"max_keypoints=%4",
              b"max_keypoints==5", b"=5", b"max_keypoints=%ff%fe", b"max_keypoints=%e2%82", b"max_keypoints=%e2%82%ac%c3", b"max_keypoints=\xe9%c3\xa9",
              b"max_keypoints=%f0%9f%98%80", b"max_keypoints=%ed%a0%80", b"max_keypoints=%f0%80%80", b"max_keypoints=%f4%90%80%80", b"max_keypoints=%e0%80%80",
              b"max_keypoints=%00", b"max_keypoints=a%0ab%22%5c", b"max_keypoints=%C2%A05", b"max_keypoints=%2B5", b"max_keypoints=+5", b"max_keypoints=5#x",
              b"max_keypoints=%f0%9f%98", b"max_keypoints=%f0%9f%98a", b"max_keypoints=%c3%28", b"max_keypoints=%e2\x82%ac"]:
    cases.append(("raw", query))
    cases.append(("plane", b"height=1&width=2&" + query))
for value in INTEGERS:
    cases.append(("plane", b"height=" + escaped(value) + b"&width=3"))
    cases.append(("plane", b"width=" + escaped(value)))
for name in NAMES:
    for value in JSON + [json.dumps(v, ensure_ascii=random.randrange(2) == 0) for v in ALL if v in OF_NAME[name] or random.randrange(12) == 0]:
        cases.append(("body", body_of([("image", '"a"'), (name, value)])))
    for value in [v for v in ALL if v in OF_NAME[name] or random.randrange(12) == 0]:
        cases.append(("raw", name.encode() + b"=" + escaped(value)))
ALPHABET = "0123456789__..++--eE   \u00a0infaNtruyxo"
for _ in range(300):
    name = random.choice(NAMES)
    value = random.choice(OF_NAME[name] + ["12", "0.75"])
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(value) + 1)
        value = value[:at] + random.choice(ALPHABET) + value[at + random.randrange(2):]
    if random.randrange(2):
        cases.append(("body", body_of([("image", '"a"'), (name, json.dumps(value))])))
    else:
        cases.append(("raw", name.encode() + b"=" + escaped(value)))
for _ in range(100):
    pairs = [(random.choice(NAMES + ["image", "other"]), random.choice(JSON[:50] + ['"5"', '"x"', '"0.5"'])) for _ in range(random.randrange(1, 6))]
    cases.append(("body", body_of(pairs)))
with open("request_cases.txt", "w", encoding="utf-8", newline="\n") as file:
    for kind, content in dict.fromkeys(cases):
        result = answer(kind, content)
        assert "\t" not in result and "\n" not in result
        file.write("%s\t%s\t%s\n" % (kind, plain(content), result))
