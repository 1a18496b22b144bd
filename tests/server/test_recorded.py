# SPDX-License-Identifier: Apache-2.0
"""Recorded answers of the server that this one replaces.

LENSING_TEST_DATA holds http_cases.jsonl, its checker check_http.py, and the weights that the cases were recorded for."""
import importlib.util
import json

import pytest

from running import Server

# Where this server answers otherwise on purpose; docs/compatibility.md gives the reasons.
DEVIATIONS = {
    "img ICO": "ICO is none of the formats that Lensing reads",
    "GET /": "the old server had no page there",
}


@pytest.fixture(scope="module")
def checker(test_data):
    path = test_data / "check_http.py"
    if not path.exists() or not (test_data / "http_cases.jsonl").exists():
        pytest.skip("LENSING_TEST_DATA has no http_cases.jsonl and check_http.py")
    spec = importlib.util.spec_from_file_location("check_http", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_recorded_cases(program, test_data, checker):
    cases = [json.loads(line) for line in open(test_data / "http_cases.jsonl")]
    different = {}
    with Server(program, test_data / "weights" / "superpoint_magicleap_v1.safetensors") as server:
        for case in cases:
            line, headers, body, problem = checker.exchange("127.0.0.1", server.port, case, 120)
            hard = [problem] if line is None else checker.check(case, line, headers, body, True)[0]
            if hard:
                different[case["case"]] = hard
    unexpected = {name: hard for name, hard in different.items() if name not in DEVIATIONS}
    assert not unexpected, json.dumps(unexpected, indent=1)
    print(f"{len(cases) - len(different)} of {len(cases)} as recorded, otherwise on purpose: {sorted(different)}")
