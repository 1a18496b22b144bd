#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of several test runners.

    count_tests.py RUNNERS.tsv

Each line of the file names a runner, its exit code, and its report: the testlog.json of `meson test`, or JUnit XML.
Prints every skipped test, a line for each runner and, last, "N passed, M failed". Exits with 0 only when something ran
and nothing failed. A runner that fails without a failed test, or runs no test at all, counts as one failure.
"""
import json
import re
import sys
import xml.etree.ElementTree
from pathlib import Path


class Count:
    """Results of one runner."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []


def count_program(name, entry, count):
    """One program of `meson test`. Programs made with cmocka count by their single tests, others as one test."""
    text = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    passed = re.findall(r"^\[ +OK \] (\S+)", text, re.MULTILINE)
    failed = {test for test in re.findall(r"^\[ +FAILED +\] (\S+)$", text, re.MULTILINE)}
    skipped = {test for test in re.findall(r"^\[ +SKIPPED +\] (\S+)$", text, re.MULTILINE)}
    result = entry["result"]
    notes = re.findall(r"^SKIP\b.*", text, re.MULTILINE)
    count.skipped += [f"{name}: {line}" for line in notes]
    count.passed += len(passed)
    count.failed += [f"{name}: {test}" for test in sorted(failed)]
    count.skipped += [f"{name}: {test}" for test in sorted(skipped)]
    if result == "SKIP":
        count.skipped.append(name)
    elif result in ("OK", "EXPECTEDFAIL"):
        if not (passed or failed or skipped or notes):
            count.passed += 1
    elif not failed:
        count.failed.append(f"{name}: {result.lower()}, exit code {entry.get('returncode')}")


def read_meson(path, count):
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            entry = json.loads(line)
            count_program(entry["name"], entry, count)


def read_junit(path, count):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed.append(name)
        elif skipped is not None:
            count.skipped.append(f"{name}: {skipped.get('message')}")
        else:
            count.passed += 1


def read_runner(name, code, report):
    count = Count()
    if Path(report).exists():
        (read_junit if report.endswith(".xml") else read_meson)(report, count)
    if code != 0 and not count.failed:
        count.failed.append(f"the runner ended with exit code {code}")
    elif count.passed + len(count.failed) == 0:
        count.failed.append("no test ran")
    return count


def main():
    runners = []
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        name, code, report = line.split("\t")
        runners.append((name, read_runner(name, int(code), report)))
    print("\n==> results")
    for name, count in runners:
        for test in count.skipped:
            print(f"SKIPPED  {name}: {test}")
    for name, count in runners:
        for test in count.failed:
            print(f"FAILED   {name}: {test}")
    for name, count in runners:
        print(f"{name}: {count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    passed = sum(count.passed for _, count in runners)
    failed = sum(len(count.failed) for _, count in runners)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
