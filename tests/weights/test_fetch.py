# SPDX-License-Identifier: Apache-2.0
"""`lensing fetch` against a server on this machine."""
import hashlib
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from weights.fake_hub import COMMIT, FakeHub, git_blob_sha1

CONFIG = b'{"model_type": "superpoint", "border_removal_distance": 4}\n'
MODEL = np.random.default_rng(7).bytes(1_000_003)
MODEL_SHA256 = hashlib.sha256(MODEL).hexdigest()


@pytest.fixture
def hub():
    server = FakeHub({"config.json": CONFIG, "model.safetensors": MODEL}, {"model.safetensors"})
    yield server
    server.close()


class Client:
    def __init__(self, program, folder, hub):
        self.program = program
        self.cache = folder / "hub"
        self.repository = self.cache / "models--org--name"
        self.blob = self.repository / "blobs" / MODEL_SHA256
        self.incomplete = self.repository / "blobs" / (MODEL_SHA256 + ".incomplete")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TT_", "SP_", "XDG_"))}
        self.environment = {**kept, "HF_HOME": str(folder), "HOME": str(folder / "home"), "HF_ENDPOINT": hub.endpoint}

    def start(self, *arguments, **environment):
        return subprocess.Popen([self.program, "fetch", *arguments], env={**self.environment, **environment}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, process, code):
        output, errors = process.communicate(timeout=60)
        assert process.returncode == code, errors
        assert code == 0 or (output == "" and errors.count("\n") == 1 and errors.startswith("lensing: fetch: "))
        return output if code == 0 else errors

    def run(self, *arguments, code=0, **environment):
        return self.finish(self.start(*arguments, **environment), code)

    def check(self, revision="main"):
        """Everything is in its place, and nothing else."""
        config_blob = self.repository / "blobs" / git_blob_sha1(CONFIG)
        snapshot = self.repository / "snapshots" / COMMIT
        assert config_blob.read_bytes() == CONFIG
        assert self.blob.read_bytes() == MODEL
        assert os.readlink(snapshot / "config.json") == f"../../blobs/{git_blob_sha1(CONFIG)}"
        assert os.readlink(snapshot / "model.safetensors") == f"../../blobs/{MODEL_SHA256}"
        files = {config_blob, self.blob, snapshot / "config.json", snapshot / "model.safetensors"}
        if revision != COMMIT:
            files.add(self.repository / "refs" / revision)
            assert (self.repository / "refs" / revision).read_text() == COMMIT
        assert {p for p in self.repository.rglob("*") if not p.is_dir()} == files


@pytest.fixture
def client(program, tmp_path, hub):
    return Client(program, tmp_path, hub)


def test_downloads_into_the_layout_of_the_cache(client, hub):
    output = client.run("org/name")
    assert output == f"{client.repository}/snapshots/{COMMIT}\n"
    client.check()
    assert client.run("org/name") == output
    assert len(hub.gets("model.safetensors")) == 1
    client.check()


def test_huggingface_hub_finds_the_files(client):
    hub_library = pytest.importorskip("huggingface_hub")
    client.run("org/name")
    for name, content in (("config.json", CONFIG), ("model.safetensors", MODEL)):
        for revision in (None, "main", COMMIT):
            found = hub_library.try_to_load_from_cache("org/name", name, cache_dir=client.cache, revision=revision)
            assert isinstance(found, str) and open(found, "rb").read() == content
        path = hub_library.hf_hub_download("org/name", name, cache_dir=client.cache, local_files_only=True)
        assert path == found
    scan = hub_library.scan_cache_dir(client.cache)
    assert not scan.warnings and [r.repo_id for r in scan.repos] == ["org/name"]


def test_uses_what_huggingface_hub_downloaded(client, hub):
    library = pytest.importorskip("huggingface_hub")
    for name in ("config.json", "model.safetensors"):
        library.hf_hub_download("org/name", name, cache_dir=client.cache, endpoint=hub.endpoint)
    before = len(hub.gets("model.safetensors"))
    client.run("org/name")
    assert len(hub.gets("model.safetensors")) == before
    client.check()


def test_progress_is_for_terminals_only(client):
    process = client.start("org/name")
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_repository_from_the_environment(client, hub):
    hub.revisions.add("v1")
    client.run(HF_MODEL="org/name", TT_WEIGHTS_REVISION="v1")
    client.check("v1")


def test_revision_with_a_slash(client, hub):
    hub.revisions.add("refs/pr/1")
    client.run("org/name@refs/pr/1")
    assert any(r[2] == "/org/name/resolve/refs%2Fpr%2F1/config.json" for r in hub.requests)
    client.check("refs/pr/1")


def test_a_commit_in_the_cache_needs_no_server(client, hub):
    output = client.run("org/name@" + COMMIT)
    client.check(COMMIT)
    requests = len(hub.requests)
    assert client.run("org/name@" + COMMIT, HF_HUB_OFFLINE="1") == output
    assert len(hub.requests) == requests


# ---- Broken-off downloads ---------------------------------------------------------------------------


def test_resumes_after_a_cut_connection(client, hub):
    hub.cut["model.safetensors"] = 400_000
    errors = client.run("org/name", code=3)
    assert "400000 of 1000003 bytes" in errors
    assert client.incomplete.read_bytes() == MODEL[:400_000]
    assert not client.blob.exists() and not (client.repository / "refs").exists()
    assert not (client.repository / "snapshots" / COMMIT / "model.safetensors").is_symlink()
    client.run("org/name")
    assert hub.gets("model.safetensors")[-1][3]["Range"] == "bytes=400000-"
    client.check()


def test_server_that_cannot_resume(client, hub):
    hub.cut["model.safetensors"] = 400_000
    client.run("org/name", code=3)
    hub.ignores_ranges = True
    client.run("org/name")
    client.check()


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(MODEL), MODEL + b"x", MODEL, b""],
                         ids=["wrong", "wrong-full-size", "too-long", "complete", "empty"])
def test_leftovers_of_an_earlier_download(client, hub, left):
    client.incomplete.parent.mkdir(parents=True)
    client.incomplete.write_bytes(left)
    client.run("org/name")
    assert len(hub.gets("model.safetensors")) == {b"x" * 1000: 2, MODEL: 0}.get(left, 1)
    client.check()


@pytest.mark.parametrize("number, code", [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_resumes_after_being_ended(client, hub, number, code):
    hub.slow["model.safetensors"] = 0.1
    process = client.start("org/name")
    end = time.monotonic() + 20
    while not (client.incomplete.exists() and client.incomplete.stat().st_size >= 65536):
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == code
    size = client.incomplete.stat().st_size
    assert 65536 <= size < len(MODEL) and client.incomplete.read_bytes() == MODEL[:size]
    hub.slow.clear()
    client.run("org/name")
    assert hub.gets("model.safetensors")[-1][3]["Range"] == f"bytes={size}-"
    client.check()


def test_two_at_once_load_the_file_once(client, hub):
    hub.slow["model.safetensors"] = 0.05
    processes = [client.start("org/name") for _ in range(2)]
    assert len({client.finish(process, 0) for process in processes}) == 1
    assert len(hub.gets("model.safetensors")) == 1
    client.check()


# ---- Wrong content ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name, kind", [("model.safetensors", "SHA-256"), ("config.json", "git SHA-1")])
def test_wrong_checksum(client, hub, name, kind):
    content = hub.files[name]
    hub.sent[name] = content[:-1] + bytes([content[-1] ^ 1])
    errors = client.run("org/name", code=3)
    assert name in errors and kind in errors
    blobs = [p.name for p in (client.repository / "blobs").iterdir()]
    assert blobs == ([git_blob_sha1(CONFIG)] if name == "model.safetensors" else [])
    assert not (client.repository / "snapshots" / COMMIT / name).is_symlink()
    hub.sent.clear()
    client.run("org/name")
    client.check()


def test_longer_file_than_announced(client, hub):
    hub.sent["model.safetensors"] = MODEL + b"more"
    assert "more than the 1000003 bytes" in client.run("org/name", code=3)
    assert not client.blob.exists()


def test_shorter_file_than_announced(client, hub):
    hub.sent["model.safetensors"] = MODEL[:-4]
    assert "999999 of 1000003 bytes" in client.run("org/name", code=3)
    assert not client.blob.exists()


def test_damaged_blob_is_replaced(client):
    client.run("org/name")
    client.blob.write_bytes(b"x" * len(MODEL))
    client.run("org/name")
    client.check()


# ---- Answers that are no files ----------------------------------------------------------------------


@pytest.mark.parametrize("status, words", [(401, "HF_TOKEN"), (403, "accept its terms"), (404, "no file config.json"),
                                           (500, "HTTP 500"), (429, "HTTP 429")])
def test_error_status(client, hub, status, words):
    hub.status = status
    errors = client.run("org/name", code=3)
    assert words in errors and "because of the test" in errors
    assert not list(client.cache.rglob("*.json")) and not client.repository.exists()


def test_unknown_repository_revision_and_file(client, hub):
    assert "'org/other'" in client.run("org/other", code=3)
    assert "revision nope" in client.run("org/name@nope", code=3)
    del hub.files["model.safetensors"]
    assert "no file model.safetensors" in client.run("org/name", code=3)
    assert not (client.repository / "refs").exists()


def test_token_goes_to_the_server_and_nowhere_else(client, hub):
    hub.token = "hf_secret"
    assert "may need a token" in client.run("org/name", code=3)
    assert "refused the token" in client.run("org/name", code=3, HF_TOKEN="hf_wrong")
    hub.requests.clear()
    client.run("org/name", HF_TOKEN=" hf_secret\n")
    client.check()
    assert {r[3].get("Authorization") for r in hub.requests if r[0] == "hub"} == {"Bearer hf_secret"}
    assert len(hub.gets("model.safetensors")) == 1
    assert all("Authorization" not in r[3] for r in hub.requests if r[0] == "storage")


def test_token_from_the_file(client, hub, tmp_path):
    hub.token = "hf_secret"
    (tmp_path / "token").write_text("hf_secret\n")
    client.run("org/name")
    client.check()


def test_token_with_a_second_line(client, hub):
    assert "HF_TOKEN" in client.run("org/name", code=2, HF_TOKEN="a\r\nX-Evil: 1")
    assert hub.requests == []


def test_renamed_repository(client, hub):
    hub.old_name = "org/old"
    client.run("org/old")
    assert (client.cache / "models--org--old" / "refs" / "main").read_text() == COMMIT


def test_server_that_is_no_hub(client, hub):
    hub.commit = None
    assert "X-Repo-Commit" in client.run("org/name", code=3)


@pytest.mark.parametrize("etag", ['"../../../evil"', '".."', '"a/b"', '""'])
def test_names_that_leave_the_cache(client, hub, etag):
    hub.etag = etag
    client.run("org/name", code=3)
    assert not client.cache.exists()


@pytest.mark.parametrize("target, words", [("file:///etc/hostname", "only http or https"),
                                           ("ftp://127.0.0.1/x", "only http or https")])
def test_redirects_to_other_protocols(client, hub, target, words):
    client.run("org/name")
    client.blob.unlink()
    hub.files["model.safetensors"] = MODEL
    original = hub.storage.server_port
    hub.storage.hub = FakeStorage(hub, target)
    assert words in client.run("org/name", code=3)
    assert hub.storage.server_port == original and not client.blob.exists()


class FakeStorage:
    """A storage that leads elsewhere."""

    def __init__(self, hub, target):
        self.lock, self.requests, self.storage, self.redirect_to = hub.lock, hub.requests, hub.storage, target


def test_endless_redirects(client, hub):
    hub.storage.hub = FakeStorage(hub, f"http://127.0.0.1:{hub.storage.server_port}/again")
    assert "without end" in client.run("org/name", code=3)
    hub.redirect_to = "/again"
    client.run("org/name@other", code=3)


# ---- Settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1", "true", "YES", "On"])
def test_offline(client, hub, value):
    assert "HF_HUB_OFFLINE" in client.run("org/name", code=3, HF_HUB_OFFLINE=value)
    assert hub.requests == []


def test_not_offline(client):
    client.run("org/name", HF_HUB_OFFLINE="0")
    client.check()


def test_unreachable_server(client):
    assert "cannot reach http://127.0.0.1:1/" in client.run("org/name", code=3, HF_ENDPOINT="http://127.0.0.1:1/")


@pytest.mark.parametrize("endpoint", ["huggingface.co", "ftp://huggingface.co", "/x"])
def test_wrong_endpoint(client, endpoint):
    assert endpoint in client.run("org/name", code=2, HF_ENDPOINT=endpoint)


def test_cache_that_cannot_be_written(client):
    assert "/dev/null/" in client.run("org/name", code=4, HF_HUB_CACHE="/dev/null/cache")


@pytest.mark.parametrize("name", ["name", "a/b/c", "../b", "a/..", "a/b@", "a/b@../x", "a/b@x//y", "a b/c", "/a/b", "a/b@ü"])
def test_wrong_names(client, hub, name):
    client.run(name, code=2)
    assert hub.requests == []


def test_magic_leap_licence_is_mentioned(client, hub):
    hub.repository = "magic-leap-community/superpoint"
    process = client.start()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and output.endswith(f"snapshots/{COMMIT}\n")
    assert errors.count("noncommercial") == 1
