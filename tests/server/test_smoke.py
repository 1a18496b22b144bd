# SPDX-License-Identifier: Apache-2.0
"""tools/smoke_test.py passes on a server that works, and says what is wrong with one that does not."""
import base64
import http.server
import io
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from running import Server

ROOT = Path(__file__).resolve().parents[2]


def smoke_test(port, *options):
    command = [sys.executable, ROOT / "tools/smoke_test.py", "--url", f"http://127.0.0.1:{port}", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1, (done.stdout[:2000], done.stderr[:2000])
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def answer(program, test_data, tmp_path_factory):
    """A right answer, through the smoke test itself."""
    path = tmp_path_factory.mktemp("smoke") / "answer.json"
    with Server(program, test_data / "weights/superpoint_magicleap_v1.safetensors") as server:
        code, line = smoke_test(server.port, "--save-json", path)
    assert code == 0, line
    assert line.startswith("PASS superpoint-p150: keypoints on scene_1.jpg (1280x960), "), line
    assert "|1-norm| max 0.000" in line
    return json.loads(path.read_text())


def npz(descriptors):
    buffer = io.BytesIO()
    np.savez(buffer, descriptors=descriptors)
    return base64.b64encode(buffer.getvalue()).decode()


def descriptors_of(answer):
    return np.load(io.BytesIO(base64.b64decode(answer["descriptors"]["data"])))["descriptors"]


def too_few(answer):
    answer.update(num_keypoints=150, keypoints=answer["keypoints"][:150], scores=answer["scores"][:150])


def wrong_order(answer):
    answer["scores"].reverse()


def long_descriptors(answer):
    answer["descriptors"]["data"] = npz(descriptors_of(answer) * np.float16(1.1))


def other_type(answer):
    answer["descriptors"]["data"] = npz(descriptors_of(answer).astype(np.float32))


def no_archive(answer):
    answer["descriptors"]["data"] = "AAAA"


def outside(answer):
    answer["keypoints"][3] = [1280.0, 5.0]


def no_scores(answer):
    del answer["scores"]


CASES = [(too_few, "150 keypoints"), (wrong_order, "descending"), (long_descriptors, "length of a descriptor"),
         (other_type, "<f4"), (no_archive, "another form"), (outside, "outside the picture"), (no_scores, "another form")]


@pytest.mark.parametrize("damage, words", CASES, ids=[case[0].__name__ for case in CASES])
def test_wrong_answers(answer, damage, words):
    damaged = json.loads(json.dumps(answer))
    damage(damaged)

    class Handler(http.server.BaseHTTPRequestHandler):
        def reply(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            good = {"status": "ok", "model": "superpoint-p150"}
            body = json.dumps(good if self.path == "/health" else damaged).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = reply

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            code, line = smoke_test(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
    assert code == 1 and line.startswith("FAIL ") and words in line, line


def test_no_server():
    code, line = smoke_test(1)
    assert code == 1 and line.startswith("FAIL /health: "), line
