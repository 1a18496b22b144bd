# SPDX-License-Identifier: Apache-2.0
"""Makes json_text_cases.txt: what Python's json reads in generated texts.

Run by hand: python make_json_text.py > json_text_cases.txt

A line is INPUT, tab, RESULT, tab, TWICE. INPUT and RESULT have %XX for bytes that are not plain. RESULT is "!" for a
text that is refused, else the values: null, true, false, i and an integer within 64 bits, r and a real number as
written, "string", [element,...,], {"key":value,...,}. TWICE is 1 when an object has a key twice. Beyond Python, the
reader refuses NaN and Infinity, what is no object, and a value inside more than 15 others; it replaces lone surrogates,
and ends keys at a NUL.
"""
import json
import random
import re

DEPTH = 15
random.seed(5)
PLAIN = set(range(0x20, 0x7F)) - {ord("%")}
BOUNDARIES = ["c080", "c1bf", "c280", "dfbf", "c2", "c200", "c2c0", "e09fbf", "e0a080", "ed9fbf", "eda080", "edbfbf"]
BOUNDARIES += ["ee8080", "efbfbf", "e0a0", "e280c0", "f08fbfbf", "f0908080", "f48fbfbf", "f4908080", "f5808080"]
BOUNDARIES += ["f09f98", "80", "bf", "ff"]
UNITS = ["0000", "0041", "007f", "0080", "07FF", "0800", "d7ff", "e000", "ffff", "fffd", "d800", "dbff", "dc00", "DFFF"]
UNITS += ["d83d", "de00", "12", "00g0", "-001", "+001", " 001", ""]
SCALARS = ["0", "-0", "1", "-1", "12", "240", "1.5", "0.0", "1e5", "1E+2", "-1.0e-3", "1e999", "true", "false", "null"]
SCALARS += ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"]
SCALARS += ["99999999999999999999999", '""', '"text"', '"{[:,]}"', '"\\u00e4\\ud83d\\ude00"']
SCALARS += ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\u00e4\u20ac\U0001f600"']
BAD = ["01", "-01", "1.", ".5", "+1", "-", "1e", "1e+", "--1", "0x1", "1_0", "NaN", "Infinity", "-Infinity", "True"]
BAD += ["nul", "nulll", "'a'", '"\\x"', '"\\u12"', '"\\', '"', '"\n"', '"\\\n"', '"\x00"', '"\x1f"', "/**/1", "", "1 2"]
BAD += ["[1,]", "[,]", "[1 2]", '{"a":1,}', "{,}", '{"a"}', '{"a":}', "{1:2}", "{a:1}", '{"a" 1}', '{"a":1 "b":2}', "["]
BAD += ["]", "}", ":", ","]
OBJECTS = ["", " ", "{}", " {} ", "{}x", "{} {}", "{}\0", "[]", "null", "1", '""', "\ufeff{}", "\v{}", "\0", "{", "{ "]
OBJECTS += ['{"a":1', "[{}]"]
INSERTS = [b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"/", b"'", b" ", b"\t", b"\n", b"\r", b"\x00", b"\x0b"]
INSERTS += [b"\x1f", b"\x7f", b"\xc2", b"\xa0", b"\xe2", b"\xef\xbb\xbf", b"\xf0", b"\xff", b"0", b"1", b"-", b"+"]
INSERTS += [b".", b"e", b"u", b"\\u", b"true"]
KEYS = ["a", "b", "\\u0061", "a\\u0000b", "", "\\ud83d\\ude00", "\U0001f600", "\\ud800", "\\udc00", "\\\\", '\\"']


class Pairs(list):
    pass


class Real(str):
    pass


def refuse(name):
    raise ValueError(name)


def read(data):
    """The value with Pairs for objects; ValueError for a text that is refused."""
    value = json.loads(data.decode(), parse_constant=refuse, parse_float=Real, object_pairs_hook=Pairs)
    if not isinstance(value, Pairs) or depth(value) > DEPTH:
        raise ValueError
    return value


def inner(value):
    return [v for _, v in value] if isinstance(value, Pairs) else value if isinstance(value, list) else []


def depth(value):
    return max((1 + depth(v) for v in inner(value)), default=0)


def replaced(text):
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def key_text(key):
    return replaced(key).split("\0")[0]


def shown(value):
    if isinstance(value, Real):
        return "r" + value
    if isinstance(value, str):
        return f'"{replaced(value)}"'
    if isinstance(value, Pairs):
        return "{" + "".join(f'"{key_text(k)}":{shown(v)},' for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + "".join(shown(v) + "," for v in value) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return f"i{min(max(value, -(2**63)), 2**63 - 1)}"


def has_key_twice(value):
    keys = [key_text(k) for k, _ in value] if isinstance(value, Pairs) else []
    return len(set(keys)) < len(keys) or any(has_key_twice(v) for v in inner(value))


def plain(data):
    return "".join(chr(b) if b in PLAIN else "%%%02X" % b for b in data)


def show_case(data):
    try:
        value = read(data)
    except ValueError:
        print(plain(data), "!", 0, sep="\t")
    else:
        print(plain(data), plain(shown(value).encode()), int(has_key_twice(value)), sep="\t")


def blank():
    return random.choice(["", "", "", " ", "\t", "\n", "\r", " \n "])


def member(level):
    return f'{blank()}"{random.choice(KEYS)}"{blank()}:{value(level)}'


def several(make, level):
    return ",".join(make(level + 1) for _ in range(random.randrange(4))) or blank()


def value(level):
    kind = random.random()
    if level > 4 or kind < 0.5:
        return blank() + random.choice(SCALARS) + blank()
    if kind < 0.75:
        return f"{blank()}[{several(value, level)}]{blank()}"
    return f"{blank()}{{{several(member, level)}}}{blank()}"


def damaged(data):
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        at = random.randrange(len(data) + 1)
        data = random.choice([data[:at] + random.choice(INSERTS) + data[at:], data[:at] + data[at + 1:], data[:at]])
    return data


def texts():
    yield from OBJECTS
    yield from ('{"a":%s}' % text for text in SCALARS + BAD)
    for n in range(DEPTH - 2, DEPTH + 2):
        for end in ("", "1", "[]", '"x"', "{}", '{"b":[]}'):
            yield '{"a":' + "[" * n + end + "]" * n + "}"
            yield '{"a":' * (n + 1) + (end or "[]") + "}" * (n + 1)
            yield '{"a":' + "[" * n + end
    for unit in UNITS:
        yield '{"a":"\\u%s","\\u%s":1}' % (unit, unit)
        yield from ('{"a":"\\u%s\\u%s"}' % (unit, other) for other in UNITS)
        yield '{"a":"\\ud83d%s"}' % unit
    yield from ('{"%s":1,"%s":2}' % (key, other) for key in KEYS for other in KEYS)


for text in texts():
    show_case(text.encode())
for sequence in map(bytes.fromhex, BOUNDARIES):
    for before, after in ((b'{"a":"', b'"}'), (b'{"', b'":1}'), (b'{"a":', b"}"), (b'{"a":"', b"z"), (b'{"a":"', b"")):
        show_case(before + sequence + after)
for _ in range(500):
    text = f"{{{several(member, 0)}}}".encode()
    show_case(text)
    show_case(damaged(text))
