# SPDX-License-Identifier: Apache-2.0
"""Results: their arrays, files, pictures and matches."""

import copy
import gc
import io
import json
import pickle
import re

import h5py
import numpy as np
import pytest

import lensing
from python.reference import equal, same


@pytest.fixture(scope="module")
def features(model, photo):
    return model(photo)


def without_times(text):
    """JSON with the times masked, which alone may differ between runs."""
    return re.sub(r'"timing_ms":\{[^}]*\}', '"timing_ms":{}', text)


# ---- Arrays ----------------------------------------------------------------------------------------------------------


def test_types_and_shapes(features):
    count = len(features)
    shapes = {"keypoints": (count, 2), "network_keypoints": (count, 2), "scores": (count,), "descriptors": (count, 256)}
    for name, shape in shapes.items():
        array = getattr(features, name)
        assert array.shape == shape and array.dtype == np.float32 and array.flags.c_contiguous and array.flags.writeable
    assert features.image_size == (217, 333) and features.scale == (333 / 640, 217 / 480)
    assert repr(features) == f"<lensing.Features: {count} keypoints of an image of 333 x 217 pixels>"


def test_values(features):
    assert (np.diff(features.scores) <= 0).all() and features.scores.max() <= 1 and features.scores.min() > 0.005
    assert np.allclose(np.linalg.norm(features.descriptors, axis=1), 1, atol=1e-5)
    assert (features.network_keypoints == np.rint(features.network_keypoints)).all()
    scaled = (features.network_keypoints.astype(np.float64) * features.scale).astype(np.float32)
    assert equal(features.keypoints.tobytes(), scaled.tobytes())
    assert set(features.timing_ms) == {"preprocess", "forward", "postprocess"}
    assert all(0 < value < 60_000 for value in features.timing_ms.values())
    assert features.parameters == {
        "max_keypoints": 1024,
        "keypoint_threshold": 0.005,
        "nms_radius": 4,
        "border_removal_distance": 4,
    }


def test_arrays_are_views(features):
    for name in ("keypoints", "scores", "descriptors"):
        array = getattr(features, name)
        assert not array.flags.owndata and array is getattr(features, name) is features[name]
        assert np.shares_memory(array, np.asarray(getattr(features._native, name)))
    assert list(features.numpy()) == ["keypoints", "scores", "descriptors"]


def test_arrays_outlive_the_result(model, photo, expected):
    features = model(photo)
    arrays = features.numpy()
    row = features.descriptors[3]
    del features
    gc.collect()
    others = [model(np.full((20, 20), 255 * (i % 2), np.uint8), keypoint_threshold=0) for i in range(4)]
    assert all(equal(arrays[name].tobytes(), expected[name].tobytes()) for name in arrays)
    del arrays, others
    gc.collect()
    assert equal(row.tobytes(), expected["descriptors"][3].tobytes())


def test_no_keypoints(model, photo, tmp_path):
    features = model(photo, max_keypoints=0)
    assert len(features) == 0 and not features.to_dict()["keypoints"]
    assert features.keypoints.shape == (0, 2) and features.descriptors.shape == (0, 256)
    matches = lensing.match(features, features)
    assert len(matches) == 0 and matches.pairs.shape == (0, 2) and matches.similarity.shape == (0,)
    assert matches.keypoints[0].shape == (0, 2)
    assert matches.to_dict()["matches"] == []
    assert len(pickle.loads(pickle.dumps(features))) == 0
    features.save(tmp_path / "none.npz")
    with np.load(tmp_path / "none.npz") as arrays:
        assert arrays["descriptors"].shape == (0, 256)


def test_changed_arrays_are_what_is_saved(model, photo, tmp_path):
    features = model(photo, max_keypoints=10)
    features.keypoints[:] += 1
    features.save(tmp_path / "changed.npz")
    with np.load(tmp_path / "changed.npz") as arrays:
        assert (arrays["keypoints"] == features.keypoints).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38, 0])
def test_any_values_can_be_written_and_drawn(model, rgb, value, tmp_path):
    features = model(rgb, max_keypoints=10)
    for array in (features.keypoints, features.scores, features.descriptors):
        array[::2] = value
    features.to_json(descriptors=True)
    for name in ("a.json", "a.npz", "a.h5"):
        features.save(tmp_path / name)
    assert features.draw(rgb).startswith(b"\x89PNG")
    lensing.match(features, features).draw(rgb, rgb)


# ---- Copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("descriptors", [True, False])
def test_pickling_and_copying(model, photo, descriptors):
    features = model(photo, return_descriptors=descriptors)
    for other in (pickle.loads(pickle.dumps(features)), copy.copy(features), copy.deepcopy(features)):
        assert same(other, features.numpy())
        assert equal(other.network_keypoints.tobytes(), features.network_keypoints.tobytes())
        assert not np.shares_memory(other.keypoints, features.keypoints)
        assert equal(other.to_json(), features.to_json())
        assert other.weights == features.weights
        assert features.weights == {"name": model.info["repository"], "license": "Apache-2.0"}


# ---- Files -----------------------------------------------------------------------------------------------------------


def test_json_is_that_of_the_program(features, cli, photo, tmp_path):
    for option, descriptors in (("--no-descriptors", False), ("--descriptors", True)):
        written = cli.run("detect", photo, option).decode()
        text = features.to_json(file=str(photo), descriptors=descriptors)
        assert equal(without_times(text + "\n"), without_times(written))
        features.save(tmp_path / "a.json", name=str(photo), descriptors=descriptors)
        assert equal((tmp_path / "a.json").read_text(), text + "\n")
        value = json.loads(text)
        del value["file"]
        assert equal(features.to_dict(descriptors=descriptors), value)
    assert abs(features.to_dict()["timing_ms"]["device_forward"] - features.timing_ms["forward"]) < 0.01


def test_npz_is_that_of_the_program(features, cli, photo, tmp_path):
    written = cli.run("detect", photo, "--format", "npz")
    for name, format in (("a.npz", None), ("a.NPZ", None), ("a", "npz")):
        features.save(tmp_path / name, format=format)
        assert equal((tmp_path / name).read_bytes(), written)


def test_hdf5_is_that_of_the_program(features, cli, photo, tmp_path):
    cli.run("detect", photo, "-o", tmp_path / "program.h5")
    with h5py.File(tmp_path / "program.h5") as file:
        member = next(name for name in _groups(file) if "keypoints" in file[name])
    for path in (tmp_path / "one.h5", tmp_path / "two.hdf5"):
        features.save(path, name=member)
        assert equal(path.read_bytes(), (tmp_path / "program.h5").read_bytes())
    features.save(tmp_path / "photo.h5")
    with h5py.File(tmp_path / "photo.h5") as file:
        assert list(file) == ["photo"] and file["photo/descriptors"].shape == (256, len(features))


def _groups(file):
    names = []
    file.visit(names.append)
    return [name for name in names if isinstance(file[name], h5py.Group)]


def test_hdf5_of_several(model, features, rgb, tmp_path):
    other = model(rgb[::-1])
    with lensing.HDF5Writer(tmp_path / "several.h5") as writer:
        writer.add("one.png", features)
        writer.add("folder/two.png", other)
        assert not (tmp_path / "several.h5").exists()
    with h5py.File(tmp_path / "several.h5") as file:
        for name, found in (("one.png", features), ("folder/two.png", other)):
            assert equal(file[name]["keypoints"][()].tobytes(), found.keypoints.tobytes())
            assert equal(file[name]["descriptors"][()].T.tobytes(), found.descriptors.tobytes())


def test_hdf5_is_dropped_after_an_exception(features, tmp_path):
    with pytest.raises(ZeroDivisionError), lensing.HDF5Writer(tmp_path / "a.h5") as writer:
        writer.add("one.png", features)
        raise ZeroDivisionError
    del writer
    gc.collect()
    assert list(tmp_path.iterdir()) == []


# ---- Pictures --------------------------------------------------------------------------------------------------------


def test_drawing_is_that_of_the_program(features, cli, photo, rgb, tmp_path):
    cli.run("detect", photo, "--draw", tmp_path / "program.png", "-o", tmp_path / "x.json")
    written = (tmp_path / "program.png").read_bytes()
    for image in (photo, rgb, photo.read_bytes()):
        assert equal(features.draw(image), written)
    assert equal(features.draw(rgb[..., ::-1], tmp_path / "drawn.png", bgr=True), written)
    assert equal((tmp_path / "drawn.png").read_bytes(), written)


# ---- Matches ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(model, scene, scene_2):
    return model([scene, scene_2])


def mutual_neighbours(first, second):
    """In float64, with the smallest lead of each nearest neighbour over the next."""
    similarity = first.descriptors.astype(np.float64) @ second.descriptors.astype(np.float64).T
    forth, back = similarity.argmax(1), similarity.argmax(0)
    chosen = np.flatnonzero(back[forth] == np.arange(len(first)))
    return np.stack([chosen, forth[chosen]], 1), similarity[chosen, forth[chosen]]


def test_matching_against_numpy(pair):
    matches = lensing.match(*pair)
    pairs, similarity = mutual_neighbours(*pair)
    assert len(matches) > 50
    assert matches.pairs.dtype == np.uint32 and matches.similarity.dtype == np.float32
    # Neighbours that are equally near in float32 may be told apart in float64.
    common = {*map(tuple, matches.pairs.tolist())} & {*map(tuple, pairs.tolist())}
    assert len(common) > 0.99 * max(len(pairs), len(matches))
    by_pair = dict(zip(map(tuple, pairs.tolist()), similarity, strict=True))
    for index, found in zip(matches.pairs.tolist(), matches.similarity.tolist(), strict=True):
        assert abs(found - by_pair.get(tuple(index), found)) < 1e-5
    first, second = matches.keypoints
    assert (first == pair[0].keypoints[matches.pairs[:, 0]]).all()
    assert (second == pair[1].keypoints[matches.pairs[:, 1]]).all()
    assert repr(matches) == f"<lensing.Matches: {len(matches)} pairs of {len(pair[0])} and {len(pair[1])} keypoints>"


def test_matching_is_that_of_the_program(model, cli, scene, scene_2, tmp_path):
    drawn = tmp_path / "matches.png"
    options = ["--ratio", "0.95", "--min-similarity", "0.5"]
    text = cli.run("match", scene, scene_2, "--draw", drawn, *options).decode()
    expected = json.loads(without_times(text))
    matches = model.match(scene, scene_2, ratio=0.95, min_similarity=0.5)
    found = matches.to_dict()
    for image in (expected["first"], expected["second"]):
        del image["file"]
    for image in (found["first"], found["second"]):
        image["timing_ms"] = {}
    assert expected["num_matches"] > 10
    assert equal(found, expected)
    assert equal(matches.draw(scene, scene_2, tmp_path / "drawn.png"), drawn.read_bytes())
    assert equal((tmp_path / "drawn.png").read_bytes(), drawn.read_bytes())


def test_matching_features_and_images(model, pair, scene, scene_2):
    matches = model.match(*pair)
    assert matches.first is pair[0] and matches.second is pair[1]
    for first, second in ((scene, pair[1]), (pair[0], scene_2)):
        other = model.match(first, second)
        assert equal(other.pairs.tobytes(), matches.pairs.tobytes())
    few = model.match(scene, scene_2, max_keypoints=30)
    assert len(few.first) == len(few.second) == 30


def test_matches_outlive_the_result(pair):
    matches = lensing.match(*pair)
    pairs, similarity, kept = matches.pairs, matches.similarity, matches.pairs.tolist()
    assert not pairs.flags.owndata and not similarity.flags.owndata
    del matches
    gc.collect()
    assert equal(pairs.tolist(), kept)
    assert io.BytesIO(similarity.tobytes()).getbuffer().nbytes == 4 * len(kept)
