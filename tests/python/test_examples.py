# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, as a user runs them: with synthetic weights, and with real ones where results matter."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from python import places


@pytest.fixture(scope="module")
def examples(root):
    return root / "examples"


@pytest.fixture(scope="module")
def real_weights(test_data):
    return test_data / "weights" / "superpoint_magicleap_v1.safetensors"


@pytest.fixture
def run(examples, synthetic_weights, tmp_path):
    """run(name, *arguments) in an empty folder; what it printed."""

    def run_example(name, *arguments, weights=synthetic_weights, prefix=(), **environment):
        command = [*prefix, sys.executable, examples / name, *map(str, arguments), "--weights", str(weights)]
        environment = {**places.environment(tmp_path / "hub"), **environment}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_example


def load(path):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- Pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--out-dir", "other/place")])
def test_quickstart(run, cli, scene, tmp_path, options):
    printed = run("quickstart.py", *options)
    folder = tmp_path / (options[1] if options else "quickstart_out")
    expected = cli.detect(scene)
    count = len(expected["scores"])
    assert f"{count} keypoints" in printed
    assert np.load(folder / "descriptors.npy").tobytes() == expected["descriptors"].tobytes()
    told = json.loads((folder / "keypoints.json").read_text())
    assert np.abs(np.array(told["keypoints"]) - expected["keypoints"]).max() < 1e-3
    assert Image.open(folder / "keypoints.png").size == (1280, 960)
    assert {path.name for path in folder.iterdir()} == {"keypoints.png", "keypoints.json", "descriptors.npy"}


def test_match(run, tmp_path):
    printed = run("match.py")
    assert re.search(r"^wrote matches.png \(\d+ matches\)$", printed, re.M)
    width, height = Image.open(tmp_path / "matches.png").size
    assert width >= 2560 and height == 960


def test_matches_fit_the_pictures(run, examples, real_weights):
    printed = run("match.py", examples / "scene_1.jpg", examples / "scene_2.jpg", weights=real_weights)
    pairs = np.array(re.findall(r"^\((\S+), (\S+)\) is \((\S+), (\S+)\), similarity", printed, re.M), float)
    mapped = np.c_[pairs[:, :2], np.ones(len(pairs))] @ np.loadtxt(examples / "scene_homography.txt").T
    assert len(pairs) == 5
    assert np.linalg.norm(mapped[:, :2] / mapped[:, 2:] - pairs[:, 2:], axis=1).max() < 4
    assert int(re.search(r"\((\d+) matches\)", printed)[1]) > 500


def test_visualize(run, examples, tmp_path):
    for options, count in (((), 500), (("--top-k", 7, "--device-id", 3), 7)):
        printed = run("visualize.py", "--image", examples / "scene_1.jpg", *options, DEVICE_ID="2")
        assert printed == f"wrote media/sample.png ({count} keypoints, top-K={count})\n"
        assert Image.open(tmp_path / "media" / "sample.png").size == (640, 480)
    printed = run("visualize.py", "--image", examples / "scene_1.jpg", "--out", "a/b.png", DEVICE_ID="")
    assert printed.startswith("wrote a/b.png (")


def test_suppression_of_visualize(examples):
    module = load(examples / "visualize.py")
    scores = np.random.default_rng(1).integers(0, 50, (30, 40)).astype(np.float32)
    kept = module.suppress(scores, 4)
    for y, x in np.ndindex(scores.shape):
        window = scores[max(y - 4, 0) : y + 5, max(x - 4, 0) : x + 5]
        assert kept[y, x] == (scores[y, x] if scores[y, x] == window.max() else 0)
    points, values = module.strongest(kept, 5)
    assert values.tolist() == sorted(kept.ravel().tolist(), reverse=True)[:5]
    assert [kept[y, x] for x, y in points] == values.tolist()
    picture = module.draw(Image.new("RGB", (100, 100)), np.array([[100, 50], [300, 200]]), np.array([0.9, 0.1]))
    pixels = np.asarray(picture)
    assert pixels[50, 105].tolist() == [0, 230, 230] and pixels[200, 302].tolist() == [0, 230, 230]
    assert pixels[50, 100].tolist() == [0, 0, 0]


# ---- Video -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def video(examples, tmp_path):
    """Six frames of 320 x 240, each seen 6 pixels further to the right."""
    cv2 = pytest.importorskip("cv2")
    picture = cv2.imread(str(examples / "scene_1.jpg"))
    path = tmp_path / "in.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (320, 240))
    for number in range(6):
        writer.write(picture[500:740, 300 + 6 * number : 620 + 6 * number])
    writer.release()
    return path


def test_video(run, video, tmp_path):
    import cv2

    assert run("video.py", video).startswith("6 frames, ")
    assert run("video.py", video, "--frames", 4, "--out", "out.avi").startswith("4 frames, ")
    capture = cv2.VideoCapture(str(tmp_path / "out.avi"))
    assert capture.get(cv2.CAP_PROP_FRAME_COUNT) == 4
    assert capture.get(cv2.CAP_PROP_FPS) == 10
    assert capture.read()[1].shape == (240, 320, 3)


def test_video_follows_keypoints(run, video, real_weights, tmp_path):
    import cv2

    printed = run("video.py", video, "--out", "out.avi", weights=real_weights)
    assert int(re.search(r"(\d+) keypoints followed", printed)[1]) > 50
    capture = cv2.VideoCapture(str(tmp_path / "out.avi"))
    frames = [capture.read()[1].astype(int) for _ in range(2)]
    # Lines in green, from the second frame on.
    green = [int(((f[..., 1] > 180) & (f[..., 0] < 100) & (f[..., 2] < 100)).sum()) for f in frames]
    assert green[1] > 100 > green[0]


def test_a_video_that_is_none(examples, tmp_path):
    pytest.importorskip("cv2")
    command = [sys.executable, examples / "video.py", tmp_path / "absent.avi"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"OpenCV cannot open {tmp_path / 'absent.avi'}"


# ---- Notebook --------------------------------------------------------------------------------------------------------


def run_notebook(path, cache, tmp_path):
    """Runs the cells in one process; what they printed."""
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    environment = {**places.environment(cache), "HF_MODEL": places.REPOSITORY, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", "\n".join(cells)]
    done = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main_branch(cache):
    """Lets a cache that holds one commit answer for the default branch."""
    refs = cache / ("models--" + places.REPOSITORY.replace("/", "--")) / "refs"
    refs.mkdir()
    (refs / "main").write_text(places.REVISION)
    return cache


def test_notebook(examples, synthetic_weights, tmp_path):
    cache = main_branch(places.hub(tmp_path / "hub", synthetic_weights))
    assert "pairs agree" in run_notebook(examples / "tour.ipynb", cache, tmp_path)


def test_the_notebook_finds_the_map(examples, real_weights, tmp_path):
    cache = main_branch(places.hub(tmp_path / "hub", real_weights))
    printed = run_notebook(examples / "tour.ipynb", cache, tmp_path)
    numbers = np.array(re.findall(r"-?\d+\.\d*(?:e[-+]\d+)?", printed.split("agree")[1]), float).reshape(3, 3)
    corners = np.array([[0, 0, 1], [1279, 0, 1], [0, 959, 1], [1279, 959, 1], [640, 480, 1]], float)
    expected = corners @ np.loadtxt(examples / "scene_homography.txt").T
    found = corners @ numbers.T
    apart = np.linalg.norm(found[:, :2] / found[:, 2:] - expected[:, :2] / expected[:, 2:], axis=1)
    # Four decimals of the printed numbers are worth some pixels at the edge.
    assert apart[4] < 40
    agree, all_pairs = map(int, re.search(r"(\d+) of (\d+) pairs agree", printed).groups())
    assert agree > 0.7 * all_pairs > 300


# ---- Ray -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder_of_photos(rgb, tmp_path):
    """Five photos, one of them broken, in two folders; and a file that is none."""
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    for number in range(4):
        Image.fromarray(rgb[number * 5 :]).save(folder / ("more" if number % 2 else ".") / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"nothing")
    (folder / "notes.txt").write_text("not a photo")
    return folder


@pytest.fixture
def run_ray(run):
    """run_ray(*arguments): the example in a network of its own, since Ray opens ports to all networks."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed; pip install 'ray[data]'")
    alone = ["unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("there are no network namespaces here, without which Ray would be open to the network")
    variables = {"RAY_DATA_DISABLE_PROGRESS_BARS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    return lambda *arguments: run("ray_folder.py", *arguments, prefix=("timeout", "120", *alone), **variables)


def read_parquet(folder):
    dataset = pytest.importorskip("pyarrow.dataset").dataset(folder, format="parquet")
    return sorted(dataset.to_table().to_pylist(), key=lambda row: row["path"])


def test_ray(run_ray, cli, folder_of_photos, tmp_path):
    options = ("--workers", 2, "--batch", 2, "--max-keypoints", 50)
    printed = run_ray("photos", "out", *options)
    assert "5 photos, 0 of them finished before" in printed
    assert "5 photos with 2 workers, 1 errors" in printed
    rows = read_parquet(tmp_path / "out")
    assert [row["path"] for row in rows] == sorted(
        str(path) for path in folder_of_photos.rglob("*") if path.suffix in (".png", ".jpg")
    )
    for row in rows:
        if row["path"].endswith("broken.jpg"):
            assert row["error"].startswith("ImageError: ") and row["scores"] is None
            continue
        expected = cli.detect(row["path"], "--max-keypoints", 50)
        assert row["error"] is None
        assert [row["width"], row["height"]] == expected["image_size"].tolist()
        assert np.array(row["keypoints"], np.float32).tobytes() == expected["keypoints"].tobytes()
        assert np.array(row["scores"], np.float32).tobytes() == expected["scores"].tobytes()
        assert row["descriptors"] == expected["descriptors"].astype("<f2").tobytes()

    # An interrupted run: one file is missing, and one was being written.
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) == 3
    times = {file: file.stat().st_mtime_ns for file in files[1:]}
    files[0].rename(files[0].with_name("." + files[0].name))
    listing = tmp_path / "list.txt"
    listing.write_text("\n".join(row["path"] for row in rows) + "\n")
    printed = run_ray(listing, "out", *options)
    assert re.search(r"5 photos, [34] of them finished before", printed)
    assert {file: file.stat().st_mtime_ns for file in files[1:]} == times
    again = read_parquet(tmp_path / "out")
    assert [row["path"] for row in again] == [row["path"] for row in rows]
    assert [row["scores"] for row in again] == [row["scores"] for row in rows]
    assert "5 of them finished before" in run_ray("photos", "out", *options)


def test_ray_reads_uris(run_ray, cli, folder_of_photos, tmp_path):
    photo = folder_of_photos / "0.png"
    (tmp_path / "list.txt").write_text(photo.as_uri() + "\n\nfile:///nonexistent/photo.png\n")
    run_ray("list.txt", (tmp_path / "out").as_uri(), "--workers", 1, "--no-descriptors")
    absent, found = read_parquet(tmp_path / "out")
    assert absent["error"].startswith("FileNotFoundError: ")
    assert np.array(found["scores"], np.float32).tobytes() == cli.detect(photo)["scores"].tobytes()
    assert found["descriptors"] is None
