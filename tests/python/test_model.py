# SPDX-License-Identifier: Apache-2.0
"""Models: where weights come from, threads, processes, memory."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import lensing
from python.reference import equal, same
from weights.fake_hub import COMMIT, FakeHub

CONFIG = b'{"model_type": "superpoint", "border_removal_distance": 20}\n'

# ---- Weights ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(synthetic_weights):
    """A server with the weights as org/name."""
    server = FakeHub(
        {"config.json": CONFIG, "model.safetensors": synthetic_weights.read_bytes()}, {"model.safetensors"}
    )
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path, monkeypatch, hub):
    """An empty cache, and an environment that names nothing else."""
    for name in os.environ:
        if name.startswith(("HF_", "TT_", "SP_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    return tmp_path / "hub" / "models--org--name"


def test_from_pretrained_downloads_once(cache, hub, rgb):
    with pytest.raises(lensing.WeightsError, match="org/name"):
        lensing.SuperPoint.from_pretrained("org/name", local_files_only=True)
    with pytest.raises(lensing.WeightsError, match="org/name"):
        lensing.SuperPoint("org/name")
    assert hub.requests == []
    with lensing.SuperPoint.from_pretrained("org/name", threads=1) as model:
        assert model.info["file"] == str(cache / "snapshots" / COMMIT / "model.safetensors")
        assert model.info["repository"] == "org/name"
        assert model.info["border_removal_distance"] == 20
        assert model.info["threads"] == 1
        assert len(model(rgb)) > 0
    count = len(hub.requests)
    assert count > 0
    for arguments in ({}, {"local_files_only": True}, {"revision": COMMIT}, {"revision": "main"}):
        lensing.SuperPoint.from_pretrained("org/name", **arguments).close()
    lensing.SuperPoint("org/name@" + COMMIT).close()
    assert len(hub.requests) == count


def test_revisions(cache, hub):
    hub.revisions = {"v1", COMMIT}
    model = lensing.SuperPoint.from_pretrained("org/name", revision="v1")
    assert model.info["revision"] == "v1"
    with pytest.raises(lensing.DownloadError, match="v2"):
        lensing.SuperPoint.from_pretrained("org/name", revision="v2")


def test_downloads_that_fail(cache, hub, monkeypatch):
    hub.status = 503
    with pytest.raises(lensing.DownloadError) as caught:
        lensing.SuperPoint.from_pretrained("org/name")
    assert caught.value.status == "network"
    assert isinstance(caught.value, ConnectionError)
    count = len(hub.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(lensing.Error, match="HF_HUB_OFFLINE"):
        lensing.SuperPoint.from_pretrained("org/name")
    assert len(hub.requests) == count


def test_paths_are_not_downloaded(cache, hub, synthetic_weights, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.json").write_bytes(CONFIG)
    (folder / "model.safetensors").symlink_to(synthetic_weights)
    with lensing.SuperPoint.from_pretrained(folder) as model:
        assert model.info["local_dir"] == str(folder)
        assert model.info["border_removal_distance"] == 20
    lensing.SuperPoint.from_pretrained(synthetic_weights).close()
    for name in ("./org/name", str(tmp_path / "absent"), "absent/model.safetensors", "~/weights", "one"):
        with pytest.raises(lensing.WeightsError):
            lensing.SuperPoint.from_pretrained(name)
    with pytest.raises(ValueError, match="revision is 'main'.*is a path"):
        lensing.SuperPoint.from_pretrained(folder, revision="main")
    assert hub.requests == []


def test_the_environment_names_weights(cache, synthetic_weights, monkeypatch):
    monkeypatch.setenv("HF_MODEL", str(synthetic_weights))
    assert lensing.SuperPoint().info["file"] == str(synthetic_weights)


def test_the_default_is_inside_the_library(cache, hub, builtin_weights, rgb):
    assert builtin_weights.name == f"{lensing.BUILTIN_WEIGHTS}.safetensors"
    expected = lensing.SuperPoint(builtin_weights)(rgb)
    for model in (lensing.SuperPoint(), lensing.SuperPoint.from_pretrained(local_files_only=True)):
        info = model.info
        assert (info["file"], info["repository"]) == (None, lensing.BUILTIN_WEIGHTS)
        assert info["license"] == "Apache-2.0"
        assert repr(model).startswith(f"<lensing.SuperPoint: {lensing.BUILTIN_WEIGHTS}, ")
        features = model(rgb)
        assert same(features, expected.numpy())
        assert features.weights == {"name": lensing.BUILTIN_WEIGHTS, "license": "Apache-2.0"}
    assert hub.requests == []


def test_what_is_named_is_not_inside_the_library(cache, hub, monkeypatch):
    """The environment, an argument, or a revision alone, which is one of the original weights."""
    assert lensing.DEFAULT_REPOSITORY == "magic-leap-community/superpoint"
    hub.repository = lensing.DEFAULT_REPOSITORY
    assert lensing.SuperPoint.from_pretrained(revision="main").info["repository"] == lensing.DEFAULT_REPOSITORY
    assert lensing.SuperPoint.from_pretrained(lensing.DEFAULT_REPOSITORY).info["file"].startswith(str(cache.parent))
    monkeypatch.setenv("HF_MODEL", "org/name")
    with pytest.raises(lensing.WeightsError, match="org/name"):
        lensing.SuperPoint()
    hub.repository = "org/name"
    with pytest.raises(lensing.WeightsError, match="org/name"):
        lensing.SuperPoint.from_pretrained(local_files_only=True)
    assert lensing.SuperPoint.from_pretrained().info["repository"] == "org/name"
    count = len(hub.requests)
    for name in ("SP_WEIGHTS_DIR", "HF_MODEL"):
        monkeypatch.setenv(name, "/nonexistent")
        with pytest.raises(lensing.WeightsError, match="/nonexistent"):
            lensing.SuperPoint.from_pretrained()
        monkeypatch.delenv(name)
    assert len(hub.requests) == count


def test_a_library_without_weights_downloads_by_default(cache, hub):
    if lensing.BUILTIN_WEIGHTS is not None:
        pytest.skip("there are weights inside the library")
    hub.repository = lensing.DEFAULT_REPOSITORY
    assert lensing.SuperPoint.from_pretrained().info["repository"] == lensing.DEFAULT_REPOSITORY


def test_the_example_of_the_readme(cache, hub, root, scene, scene_2, tmp_path, monkeypatch):
    hub.repository = lensing.DEFAULT_REPOSITORY
    (code,) = re.findall(r"^```python\n(.*?)^```", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    for source, name in ((scene, "photo.jpg"), (scene, "left.jpg"), (scene_2, "right.jpg")):
        (tmp_path / name).symlink_to(source)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert (tmp_path / "matches.png").read_bytes().startswith(b"\x89PNG")


def test_a_download_can_be_interrupted(cache, hub, environment):
    hub.slow = {"model.safetensors": 0.2}
    code = "import lensing; print('start', flush=True); lensing.SuperPoint.from_pretrained('org/name')"
    environment.update(HF_HOME=os.environ["HF_HOME"], HF_ENDPOINT=hub.endpoint)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell lets background jobs ignore it
    )
    process.stdout.readline()
    while not hub.gets("model.safetensors"):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert errors.rstrip().endswith("KeyboardInterrupt")


# ---- The object ------------------------------------------------------------------------------------------------------


def test_info(model, program, synthetic_weights):
    info = model.info
    told = json.loads(subprocess.run([program, "info", "--json", "-w", synthetic_weights], capture_output=True).stdout)
    assert info["cpu_path"] == told["cpu_path"]
    assert info["backend"] == "cpu"
    assert info["precision"] == "fp32"
    assert info["threads"] == len(os.sched_getaffinity(0))
    assert info["file"] == info["repository"] == str(synthetic_weights)
    assert info["revision"] is None
    assert repr(model) == f"<lensing.SuperPoint: {synthetic_weights}, fp32, {info['threads']} threads>"


def test_bf16(program, synthetic_weights, photo):
    told = json.loads(subprocess.run([program, "info", "--json"], capture_output=True).stdout)
    if "avx512_bf16" not in told["cpu_features"].split():
        with pytest.raises(lensing.UnsupportedError, match="AVX512_BF16"):
            lensing.SuperPoint(synthetic_weights, precision="bf16")
        return
    command = [program, "detect", "-w", synthetic_weights, "--precision", "bf16", photo]
    expected = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    with lensing.SuperPoint(synthetic_weights, precision="bf16") as model:
        assert model.info["precision"] == "bf16"
        found = model(photo).to_dict()
    assert found["scores"] == expected["scores"] and found["keypoints"] == expected["keypoints"]


def test_version(program):
    printed = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    assert printed == f"lensing {lensing.__version__}\n"


def test_the_end_of_a_block_closes(synthetic_weights):
    with pytest.raises(ZeroDivisionError), lensing.SuperPoint(synthetic_weights) as model:
        assert not model.closed
        raise ZeroDivisionError
    assert model.closed


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_threads(synthetic_weights, rgb, expected, threads):
    with lensing.SuperPoint(synthetic_weights, threads) as model:
        assert model.info["threads"] == threads
        assert same(model(rgb), expected)


# ---- Threads ---------------------------------------------------------------------------------------------------------


def test_sixteen_threads_on_one_model(model, rgb):
    """The same bytes as one after the other."""
    images = [np.ascontiguousarray(np.roll(rgb, 31 * number, axis=1)) for number in range(16)]
    serial = [model(image).numpy() for image in images]
    assert len({found["scores"].tobytes() for found in serial}) == 16
    barrier = threading.Barrier(16)

    def work(number):
        barrier.wait()
        return [same(model(images[i % 16]), serial[i % 16]) for i in range(number, number + 2)]

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(work, range(16)))
    assert results == [[True] * 2] * 16


def test_other_threads_run_meanwhile(model, rgb):
    """Python's global lock is free while the network works: a counter moves on."""
    counts = []
    done = threading.Event()

    def count():
        counted = 0
        while not done.is_set():
            counted += 1
            time.sleep(0.0005)
        counts.append(counted)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # no thread is interrupted: only one that lets the lock go lets others run
    try:
        thread.start()
        for _ in range(5):
            model(rgb)
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()
    assert counts[0] > 20


def test_closing_while_others_work(synthetic_weights, rgb, expected):
    """Calls that run end as usual, later ones are refused."""
    model = lensing.SuperPoint(synthetic_weights)
    started = threading.Event()

    def work():
        found = []
        while True:
            try:
                features = model(rgb)
            except lensing.ClosedError:
                return found
            found.append(same(features, expected))
            started.set()

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(work) for _ in range(4)]
        started.wait(60)
        model.close()
        results = [worker.result() for worker in workers]
    assert any(results)
    assert all(all(found) for found in results)


def test_threads_share_a_file(model, rgb, tmp_path):
    import h5py

    features = model(rgb)
    with lensing.HDF5Writer(tmp_path / "a.h5") as file, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: file.add(f"{number}.png", features), range(40)))
    with h5py.File(tmp_path / "a.h5") as file:
        assert sorted(file) == sorted(f"{number}.png" for number in range(40))


# ---- Processes -------------------------------------------------------------------------------------------------------


_shared = {}


def _detect_shared(image):
    return _shared["model"](image)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_the_model(model, rgb, expected):
    _shared["model"] = model
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for features in pool.map_async(_detect_shared, [rgb, rgb]).get(timeout=60):
            assert same(features, expected)
    assert same(model(rgb), expected)


def test_a_model_cannot_be_pickled(model):
    import pickle

    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(model)


# ---- Memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow(synthetic_weights, photo, environment):
    """LENSING_CALLS: how many calls, more than 100; 10,000 for the long run."""
    calls = int(os.environ.get("LENSING_CALLS", "300"))
    script = Path(__file__).with_name("call_many.py")
    command = [sys.executable, script, synthetic_weights, photo, str(calls)]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    resident, traced = map(int, output.split())
    print(f"{calls} calls: memory of the process grew by {resident} bytes, of objects by {traced} bytes")
    assert resident < 4 << 20
    assert traced < 64 << 10


def test_results_are_freed(model, rgb):
    import tracemalloc

    features = model(rgb)
    assert equal(sys.getrefcount(features), 2)
    tracemalloc.start()
    for _ in range(3):
        model(rgb).numpy()
    before = tracemalloc.get_traced_memory()[0]
    model(rgb).numpy()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 4096
