# SPDX-License-Identifier: Apache-2.0
"""How tt_superpoint opens a model: arguments, what is prepared, and what it says about both."""

import inspect
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import lensing
import tt_superpoint
from python import places
from python.reference import same
from tt_superpoint import SuperPoint
from tt_superpoint.warmup import DECODERS, synthetic_image
from weights.fake_hub import FakeHub

NOTHING = {"sizes": (), "nms_radii": (), "num_workers": 0}
DEFAULT = {
    "sizes": ((1920, 1080), (1600, 900), (1280, 720), (640, 480)),
    "nms_radii": (4, 0),
    "decoders": ("jpeg", "png"),
    "num_workers": 4,
    "fallbacks": True,
}
MINIMAL = {"sizes": ((640, 480),), "nms_radii": (4,), "decoders": (), "num_workers": 0, "fallbacks": False}


@pytest.fixture(scope="module")
def folder(synthetic_weights, tmp_path_factory):
    return places.folder(tmp_path_factory.mktemp("tt") / "weights", synthetic_weights)


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """An environment without weights, and without what other tests leave in it."""
    for name in list(os.environ):
        if name.startswith(("HF_", "TT_", "SP_", "LOGURU_", "PILLOW_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TT_LOGGER_LEVEL", "Error")
    monkeypatch.setenv("LOGURU_LEVEL", "WARNING")


def opened(folder, **options):
    """Its configuration."""
    with SuperPoint.from_pretrained(folder, **{"warmup_variants": NOTHING, **options}) as model:
        return model.config


# ---- Signatures ------------------------------------------------------------------------------------------------------


def described(function):
    return [(p.name, p.kind.name, p.default) for p in inspect.signature(function).parameters.values()]


def test_signatures():
    """As the page of the package that this one takes over has them."""
    any_way, by_name, empty = "POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY", inspect.Parameter.empty
    assert described(SuperPoint.from_pretrained) == [
        ("pretrained_model_name_or_path", any_way, "magic-leap-community/superpoint"),
        ("revision", by_name, None),
        ("device", by_name, None),
        ("device_id", by_name, 0),
        ("dispatch", by_name, "auto"),
        ("warmup_variants", by_name, None),
        ("precompile_sizes", by_name, None),
        ("precompile_nms_radii", by_name, ()),
        ("trace_region_size", by_name, 33554432),
        ("local_files_only", by_name, False),
        ("verbose", by_name, False),
    ]
    assert described(SuperPoint.__call__)[1:] == [
        ("images", any_way, empty),
        ("max_keypoints", any_way, 1024),
        ("keypoint_threshold", any_way, 0.005),
        ("nms_radius", any_way, 4),
        ("return_descriptors", any_way, True),
        ("bgr", any_way, False),
        ("num_workers", any_way, 4),
    ]
    assert set(tt_superpoint.__all__) >= {"SuperPoint", "SuperPointOutput"}
    assert tt_superpoint.__version__ == lensing.__version__


# ---- Weights ---------------------------------------------------------------------------------------------------------


def test_the_default_repository_at_its_revision(synthetic_weights, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    places.hub(tmp_path / "hub", synthetic_weights)
    for arguments in ({}, {"local_files_only": True}, {"revision": places.REVISION}):
        with SuperPoint.from_pretrained(**arguments, warmup_variants=NOTHING) as model:
            config = model.config
            assert (config["repository"], config["revision"]) == (places.REPOSITORY, places.REVISION)
            assert config["local_dir"] is None
    with pytest.raises(OSError, match="main"):
        SuperPoint.from_pretrained(revision="main", local_files_only=True)
    with pytest.raises(OSError, match="org/name"):
        SuperPoint.from_pretrained("org/name", local_files_only=True)


def test_other_repositories_at_their_default_branch(synthetic_weights, monkeypatch):
    files = {"config.json": b'{"model_type": "superpoint"}', "model.safetensors": synthetic_weights.read_bytes()}
    server = FakeHub(files, {"model.safetensors"})
    try:
        monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
        with pytest.raises(OSError, match="org/name"):
            SuperPoint.from_pretrained("org/name", local_files_only=True)
        assert server.requests == []
        assert opened("org/name")["revision"] is None
        assert server.requests
    finally:
        server.close()


def test_folders(folder):
    for place in (folder, str(folder)):
        config = opened(place, revision="main")
        assert (config["repository"], config["revision"], config["local_dir"]) == (str(folder), None, str(folder))
    with pytest.raises(OSError, match="/nonexistent"):
        SuperPoint.from_pretrained("/nonexistent")
    with pytest.raises(TypeError):
        SuperPoint.from_pretrained(3)


def test_the_environment_names_no_weights(folder, monkeypatch):
    """The variables of the server have no meaning here."""
    monkeypatch.setenv("SP_WEIGHTS_DIR", str(folder))
    monkeypatch.setenv("HF_MODEL", str(folder))
    with pytest.raises(OSError, match=places.REPOSITORY):
        SuperPoint.from_pretrained(local_files_only=True)


# ---- Arguments about a card ------------------------------------------------------------------------------------------


class OpenDevice:
    """What ttnn.open_device() might give."""

    closed = False

    def close(self):
        self.closed = True


def test_arguments_about_a_card_are_kept(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = opened(folder, device_id=3, trace_region_size=64 << 20)
        opened(folder, device="cpu")
    assert config["requested"] == {"device": None, "device_id": 3, "dispatch": "auto", "trace_region_size": 64 << 20}
    info = lensing.SuperPoint(folder).info
    assert config["backend"] == "cpu"
    assert config["device_config"] == {
        "dispatch": "cpu-" + info["cpu_path"],
        "num_command_queues": 1,
        "compute_grid": f"{info['threads']}x1",
    }


def test_the_same_facts_as_the_server(folder, program, synthetic_weights):
    from server.running import Server

    with Server(program, synthetic_weights) as server:
        told = server.get("/info").json
    assert opened(folder)["device_config"] == told["device_config"]


def test_a_device_is_left_alone(folder):
    device = OpenDevice()
    with pytest.warns(RuntimeWarning, match="device is a OpenDevice.*CPU") as caught:
        SuperPoint.from_pretrained(folder, device=device, warmup_variants=NOTHING).close()
    assert not device.closed
    assert [warning.filename for warning in caught] == [__file__]


def test_dispatch(folder, monkeypatch):
    for value in ("eth", "worker"):
        with pytest.warns(RuntimeWarning, match=f"dispatch is '{value}'"):
            assert opened(folder, dispatch=value)["requested"]["dispatch"] == value
    monkeypatch.setenv("SP_DISPATCH", "worker")
    with pytest.warns(RuntimeWarning, match="dispatch is 'worker'"):
        assert opened(folder)["requested"]["dispatch"] == "worker"
    with pytest.warns(RuntimeWarning, match="dispatch is 'eth'"):
        opened(folder, dispatch="eth")
    monkeypatch.setenv("SP_DISPATCH", "")
    assert opened(folder)["requested"]["dispatch"] == "auto"
    monkeypatch.setenv("SP_DISPATCH", "sideways")
    with pytest.raises(ValueError, match="SP_DISPATCH is 'sideways'"):
        opened(folder)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"device": "cuda"}, ValueError, "device is 'cuda'"),
        ({"device": 0}, ValueError, "device is 0"),
        ({"device_id": -1}, ValueError, "device_id is -1"),
        ({"device_id": "0"}, TypeError, "device_id is '0'"),
        ({"dispatch": "tensix"}, ValueError, "dispatch is 'tensix'"),
        ({"trace_region_size": -1}, ValueError, "trace_region_size is -1"),
        ({"trace_region_size": 1e6}, TypeError, "trace_region_size is 1000000.0"),
        ({"warmup_variants": True}, ValueError, "warmup_variants is True"),
        ({"warmup_variants": "everything"}, ValueError, "warmup_variants is 'everything'"),
        ({"warmup_variants": 3}, ValueError, "warmup_variants is 3"),
        ({"warmup_variants": {"radius": 3}}, ValueError, "no key 'radius'.*sizes, nms_radii"),
        ({"warmup_variants": {"sizes": ((0, 480),)}}, ValueError, "width of sizes is 0"),
        ({"warmup_variants": {"sizes": (640, 480)}}, ValueError, r"a size is \(width, height\)"),
        ({"warmup_variants": {"sizes": ((100000, 100000),)}}, ValueError, "100000 x 100000"),
        ({"warmup_variants": {"nms_radii": (33,)}}, ValueError, "radius of nms_radii is 33"),
        ({"warmup_variants": {"nms_radii": 3}}, TypeError, "nms_radii is 3"),
        ({"warmup_variants": {"decoders": "jpeg"}}, TypeError, "decoders is 'jpeg'"),
        ({"warmup_variants": {"decoders": ("gif",)}}, ValueError, "decoders has 'gif'"),
        ({"warmup_variants": {"num_workers": -1}}, ValueError, "num_workers is -1"),
        ({"precompile_sizes": ((1, 2, 3),)}, ValueError, "precompile_sizes"),
        ({"precompile_nms_radii": (-1,)}, ValueError, "precompile_nms_radii is -1"),
    ],
)
def test_wrong_arguments(folder, options, kind, words):
    with pytest.raises(kind, match=words):
        SuperPoint.from_pretrained(folder, **options)


def test_loggers_of_ttnn(folder, monkeypatch):
    monkeypatch.delenv("TT_LOGGER_LEVEL")
    monkeypatch.delenv("LOGURU_LEVEL")
    opened(folder, verbose=True)
    assert "TT_LOGGER_LEVEL" not in os.environ and "LOGURU_LEVEL" not in os.environ
    monkeypatch.setenv("LOGURU_LEVEL", "DEBUG")
    opened(folder)
    assert (os.environ["TT_LOGGER_LEVEL"], os.environ["LOGURU_LEVEL"]) == ("Error", "DEBUG")
    monkeypatch.setenv("TT_LOGGER_LEVEL", "Error")


# ---- Preparation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"warmup_variants": None}, DEFAULT),
        ({"warmup_variants": "default"}, DEFAULT),
        ({"warmup_variants": "minimal"}, MINIMAL),
        ({"warmup_variants": False}, MINIMAL),
        ({"warmup_variants": {"nms_radii": (0, 3, 4)}}, {**DEFAULT, "nms_radii": (0, 3, 4)}),
        ({"warmup_variants": {"sizes": [[640, 360], [64, 48]]}}, {**DEFAULT, "sizes": ((640, 360), (64, 48))}),
        ({"warmup_variants": {"fallbacks": False, "num_workers": 0, "decoders": ["webp"]}},
         {**DEFAULT, "fallbacks": False, "num_workers": 0, "decoders": ("webp",)}),
        ({"precompile_sizes": ((64, 48),)}, {**DEFAULT, "sizes": ((64, 48),)}),
        ({"precompile_sizes": (), "precompile_nms_radii": (4, 2)}, {**DEFAULT, "sizes": (), "nms_radii": (4, 0, 2)}),
        ({"warmup_variants": "minimal", "precompile_nms_radii": [2]}, {**MINIMAL, "nms_radii": (4, 2)}),
    ],
)  # fmt: skip
def test_what_is_prepared(folder, options, expected):
    with SuperPoint.from_pretrained(folder, **options) as model:
        config = model.config
        assert config["warmup_variants"] == expected
        steps = {f"size={width}x{height}" for width, height in expected["sizes"]}
        steps |= {f"nms_radius={radius}" for radius in expected["nms_radii"] if radius != 0}
        steps |= {f"num_workers={expected['num_workers']}"} if expected["num_workers"] else set()
        assert set(config["warmup_s"]) == steps
        assert all(type(seconds) is float and seconds > 0 for seconds in config["warmup_s"].values())
        again = {name: value for name, value in expected.items() if name != "fallbacks"}
        assert model.warmup(**again) == {}


def test_all_radii(folder):
    with SuperPoint.from_pretrained(folder, warmup_variants="all") as model:
        assert model.config["warmup_variants"] == {**DEFAULT, "nms_radii": tuple(range(10))}


def test_more_is_prepared_later(folder):
    with SuperPoint.from_pretrained(folder, warmup_variants=NOTHING) as model:
        assert model.config["warmup_s"] == {}
        assert list(model.warmup(nms_radius=0)) == ["nms_radius=0"]
        assert list(model.warmup(nms_radius=3)) == ["nms_radius=3"]
        assert model.warmup(nms_radius=3) == model.warmup() == {}
        assert list(model.warmup(size=(1024, 768))) == ["size=1024x768"]
        assert model.warmup(size=(1024, 768)) == {}
        steps = model.warmup(sizes=[(800, 600), (640, 360)], decoders=["webp"], num_workers=8)
        assert list(steps) == ["size=800x600", "size=640x360", "num_workers=8"]
        assert model.warmup(num_workers=3, decoders=DECODERS, fallbacks=True) == {}
        config = model.config
        assert config["warmup_variants"] == {
            "sizes": ((1024, 768), (800, 600), (640, 360)),
            "nms_radii": (0, 3),
            "decoders": ("jpeg", "png", "webp", "bmp", "tiff"),
            "num_workers": 8,
            "fallbacks": True,
        }
        assert set(config["warmup_s"]) == {"nms_radius=0", "nms_radius=3", "size=1024x768", *steps}
        json.dumps(config)
        for wrong, kind in (({"nms_radius": 40}, ValueError), ({"radius": 4}, TypeError), ({"size": 3}, ValueError)):
            with pytest.raises(kind):
                model.warmup(**wrong)


def test_a_config_is_a_copy(folder):
    with SuperPoint.from_pretrained(folder, warmup_variants="minimal") as model:
        for value in model.config.values():
            if isinstance(value, dict):
                value.clear()
        assert model.config["warmup_s"] and model.config["requested"] and model.config["warmup_variants"]


def test_preparation_changes_no_result(folder, photo, expected):
    for variants in (NOTHING, "minimal", None):
        with SuperPoint.from_pretrained(folder, warmup_variants=variants) as model:
            assert same(model(photo), expected)
            model.warmup(nms_radius=7)
            assert same(model(photo), expected)


def test_buffers_of_pillow(folder, tmp_path):
    """Two for each thread that reads, if Pillow is in use and nobody else decides."""
    code = (
        "import sys\n"
        "from PIL import Image\n"
        "import tt_superpoint\n"
        "before = Image.core.get_blocks_max()\n"
        f"with tt_superpoint.SuperPoint.from_pretrained({str(folder)!r}) as model:\n"
        "    print(before, Image.core.get_blocks_max())\n"
    )
    environment = places.environment(tmp_path)
    for more, expected in (({}, "0 8"), ({"PILLOW_BLOCKS_MAX": "3"}, "3 3")):
        run = [sys.executable, "-c", code]
        told = subprocess.run(run, check=True, env={**environment, **more}, capture_output=True, text=True).stdout
        assert told.strip() == expected


def test_a_failed_preparation_closes_the_model(folder, monkeypatch):
    closed = []
    monkeypatch.setattr(SuperPoint, "close", lambda self: closed.append(self))

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(tt_superpoint.warmup.Preparation, "prepare", fail)
    with pytest.raises(MemoryError):
        SuperPoint.from_pretrained(folder)
    assert len(closed) == 1


# ---- Synthetic images ------------------------------------------------------------------------------------------------


def test_synthetic_images():
    image = synthetic_image()
    assert image.shape == (480, 640, 3) and image.dtype == np.uint8 and image.flags.c_contiguous
    assert synthetic_image(1920, 1080).shape == (1080, 1920, 3)
    assert synthetic_image(1, 1).shape == (1, 1, 3)
    assert (synthetic_image(seed=1) == synthetic_image(seed=1)).all()
    assert (synthetic_image(seed=1) != image).any()
    for wrong in ((0, 480), (640, -1), (100000, 100000)):
        with pytest.raises(ValueError, match="size"):
            synthetic_image(*wrong)


def test_synthetic_images_have_keypoints(test_data, tmp_path):
    weights = places.folder(tmp_path / "w", test_data / "weights" / "superpoint_magicleap_v1.safetensors")
    with SuperPoint.from_pretrained(weights, warmup_variants=NOTHING) as model:
        for size in ((640, 480), (1600, 900)):
            assert 500 < len(model(synthetic_image(*size))) < 800
