# SPDX-License-Identifier: Apache-2.0
"""Makes json_cases.txt and base64_cases.txt: what CPython's json and binascii say to generated texts.

Run by hand in this folder, with CPython 3.11 or 3.12 (3.13 changed messages). A line is INPUT, tab, RESULT. INPUT has %XX
for bytes that are not plain. RESULT is "=VALUE" (JSON as Python writes it; for base64 the bytes like INPUT), "!POSITION
MESSAGE" (base64: "!MESSAGE"), or "?" for a body that Python cannot read for another reason than its syntax.
"""
import binascii
import json
import math
import random
import re

random.seed(1)
PLAIN = set(range(0x21, 0x7F)) - {ord("%")} | {0x20}
LETTERS = ['"', "\\", "/", "u", "{", "}", "[", "]", ":", ",", " ", "\n", "\t", "0", "1", "9", "-", "+", ".", "e", "E", "N",
           "a", "n", "t", "true", "NaN", "Infinity", "null", "\\u", "d83d", "\\ud83d", "\\ude00", "\u00e4", "\u20ac",
           "\U0001f600", "\x00", "\x1f", "\x7f", "\\n", "\\x", '"a"', "'", "\ufeff", "\ud800", "\udc00", "b", "f", "0041"]


def plain(data):
    return "".join(chr(b) if b in PLAIN else "%%%02X" % b for b in data)


def finite(value):
    """NaN and infinities as the strings that the server shows."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, list):
        return [finite(v) for v in value]
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    return value


def shown(value):
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"))
    return re.sub("[\ud800-\udfff]", lambda m: "\\u%04x" % ord(m[0]), text)


def expected(data):
    try:
        return "=" + shown(json.loads(data))
    except json.JSONDecodeError as error:
        return "!%d %s" % (error.pos, error.msg)
    except (ValueError, RecursionError):
        return "?"


def number():
    kind = random.randrange(8)
    if kind == 0:
        return random.choice(["0", "-0", "1", "-1", "10", "307200", "9" * 25, "-" + "8" * 30])
    if kind == 1:
        return random.choice(["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-0.0", "5e-324", "1e-5", "0.0001",
                              "1e15", "1e16", "123456789012345680.0", "1E2", "0.1e1", "2.50", "1e22", "1e23", "100e-2"])
    if kind < 4:
        return str(random.randrange(-10**6, 10**6))
    if kind < 6:
        return repr(random.uniform(-1, 1) * 10.0 ** random.randrange(-30, 30))
    return "%s%d.%d" % (random.choice(["", "-"]), random.randrange(1000), random.randrange(10**random.randrange(1, 20)))


def string():
    pieces = ["a", "key", "\\n", "\\\"", "\\\\", "\\/", "\\b\\f\\r\\t", "\\u0041", "\\u00e4", "\\ud83d\\ude00", "\\ud800", "\\udc00",
              "\\ud800\\ud83d\\ude00", "\u00e4", "\u20ac", "\U0001f600", "\x7f", " ", "\\u0000", "\\u001f", "x" * 70, "\\uD7FF", "\\uE000"]
    return '"' + "".join(random.choice(pieces) for _ in range(random.choice([0, 1, 1, 2, 3, 5]))) + '"'


def name():
    return random.choice(['"a"', '"b"', '"\\u0061"', '"image"', '""', string()])


def blank():
    return random.choice(["", "", "", " ", "\n", "\t \r"])


def value(depth=0):
    kind = random.randrange(9 if depth < 4 else 6)
    if kind < 2:
        return number()
    if kind < 4:
        return string()
    if kind < 6:
        return random.choice(["null", "true", "false"])
    count = random.choice([0, 1, 2, 3, 5, 20 if depth == 0 else 1])
    if kind < 7:
        return "[" + blank() + (blank() + "," + blank()).join(value(depth + 1) for _ in range(count)) + blank() + "]"
    return "{" + blank() + (blank() + "," + blank()).join(
        name() + blank() + ":" + blank() + value(depth + 1) for _ in range(count)) + blank() + "}"


def mutated(text):
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        at = random.randrange(len(text) + 1)
        kind = random.randrange(4)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + text[at + 1:]
        else:
            text = text[:at] + random.choice(LETTERS) + text[at + (kind == 3):]
    return text


def encoded(text):
    kind = random.randrange(12)
    if kind == 0:
        codec = random.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"])
        data = text.encode(codec, "surrogatepass")
        if random.randrange(4) == 0:
            data = (b"\xfe\xff" if codec == "utf-16-be" else b"\x00\x00\xfe\xff" if codec == "utf-32-be" else b"") + data
        return data if random.randrange(4) else data[:random.randrange(len(data) + 1)]
    data = text.encode("utf-8", "surrogatepass")
    if kind == 1:
        at = random.randrange(len(data) + 1)
        data = data[:at] + bytes(random.choices(range(128, 256), k=random.randrange(1, 4))) + data[at:]
    return data


FIXED = [b"", b" ", b"{", b"[", b'"', b"-", b'{"a":1,}', b"[1,]", b"[,]", b'{"a"}', b'{"a":}', b'{"a":1 "b"}', b"007", b"-01", b"1.", b".5",
         b"1e", b"1e+", b"+1", b"nul", b"nulll", b"tru", b"-Inf", b"NaNa", b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"1\x00", b"\x001", b"\x00\x00",
         b"1\x00\x00\x00", b"1\x002\x00", b"\xef\xbb\xbf\xef\xbb\xbf1", b"\xed\xa0\x80", b'"\xed\xa0\xbd\xed\xb8\x80"', b'"\xf4\x90\x80\x80"',
         b'"\xc0\x80"', b'"\xe0\x9f\xbf"', b'"\xf0\x8f\xbf\xbf"', b'"\xf5\x80\x80\x80"', b"\xff\xfe\x00\xd8", b'\xff\xfe"\x00\x00\xd8"\x00',
         b'\xfe\xff\x00"\xd8\x00\x00"', b"\xff\xfe\x00\x00\x00\x00\x11\x00", b'"\\ud83d\\ude00', b'"\\ud83d\\ude0', b'"\\ud83d\\u', b'"\\ud83d\\',
         b'"\\ud83d\\uzzzz"', b'"\\ud83d\\n"', b'"\\u123', b'"\\u1234', b'"\\', b'"\\u', b"9" * 4300, b"9" * 4301, b"-" + b"9" * 4301,
         b"[" + b"9" * 4301 + b" x", b"1" * 5000 + b".5", b'"' + b"\xc3\xa4" * 40 + b'\x01"', b'"\\n\\n\\u00e4 \\x"', b'{"a":1}{', b"'a'",
         b'{"a":1,"b":2,"a":3,"b":{"c":1,"c":2}}', b"{" + b",".join(b'"%d":%d' % (i % 13, i) for i in range(40)) + b"}"]
cases = {}
for data in FIXED:
    cases[data] = expected(data)
while len(cases) < 2900:
    text = value()
    if random.randrange(10) < 7:
        text = mutated(text)
    data = encoded(text)
    if len(data) <= 110:
        cases[data] = expected(data)
with open("json_cases.txt", "w", encoding="utf-8", newline="\n") as file:
    for data, result in cases.items():
        assert "\t" not in result and "\n" not in result
        file.write("%s\t%s\n" % (plain(data), result))

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def decoded(text):
    try:
        return "=" + plain(binascii.a2b_base64(text.encode("ascii"), strict_mode=True))
    except (ValueError, UnicodeEncodeError) as error:
        return "!%s: %s" % (type(error).__name__, error)


texts = ["", "=", "==", "A", "AA", "AAA", "A=", "A===", "AA=", "AA==", "AA===", "AAA=", "AAA==", "AAAA=", "AAAA==", "AAAA====", "AAAA=A", "AAAA=!",
         "=AAAA", "AA=A", "AAAA=AAA", "AB==", "AAB=", "A\u00e4==", "\u20ac", "\U0001f600A", "AAAA\u00e4\u20ac", "=\u00e4", "AAAA\x80A\u00e4", "-_8=",
         "QUJD\n", "QU JD", "\nQUJD", "data:image/png;base64,iVBORw0KGgo=", "AA\x00A", "PUJDPUJD"]
while len(texts) < 700:
    text = "".join(random.choices(ALPHABET, k=random.choice([random.randrange(12), random.randrange(30, 140)])))
    if random.randrange(3):
        text = text[:len(text) // 4 * 4] + random.choice(["", "AA==", "AAA=", "zw==", "/+8="])
    for _ in range(random.choice([0, 0, 1, 1, 2])):
        at = random.choice([0, random.randrange(len(text) + 1), max(len(text) - 1, 0), len(text)])
        text = text[:at] + random.choice(["=", "==", " ", "\n", "-", "_", "!", "\u00e4", "\u20ac", "A", "\x7f", "@", "[", "`", "{", ":", "."]) + text[at:]
    texts.append(text)
with open("base64_cases.txt", "w", encoding="utf-8", newline="\n") as file:
    for text in dict.fromkeys(texts):
        file.write("%s\t%s\n" % (plain(text.encode()), decoded(text)))
