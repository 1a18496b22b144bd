# SPDX-License-Identifier: Apache-2.0
"""The Python in documents runs as it stands there: docs/python.md, and the page of the package that tt_superpoint takes
over, where it is at hand."""

import ast
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from python import places
from python.test_examples import main_branch

DEMO = "code/sample_data/house_in_field_1080p.jpg"


@pytest.fixture
def folder(root, synthetic_weights, tmp_path):
    """Photos and weights under the names that the documents use."""
    for name, scene in (("photo.jpg", 1), ("left.jpg", 1), ("right.jpg", 2), ("image1.jpg", 1), (DEMO, 1)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(root / "examples" / f"scene_{scene}.jpg")
    Image.open(tmp_path / "photo.jpg").save(tmp_path / "frame.png")
    places.folder(tmp_path / "weights", synthetic_weights)
    main_branch(places.hub(tmp_path / "hub", synthetic_weights))
    return tmp_path


def run(folder, code):
    """Runs code in the folder; what it printed."""
    environment = {**places.environment(folder / "hub"), "HF_MODEL": places.REPOSITORY}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_of_this_project(root, folder):
    pytest.importorskip("torch")
    pytest.importorskip("cv2")
    snippets = re.findall(r"^```python\n(.*?)^```$", (root / "docs" / "python.md").read_text(), re.M | re.S)
    assert len(snippets) == 12
    check = "\nassert len(pairs) > 0 and len(features) == len(keypoints) > 0\n"
    printed = run(folder, "\n".join(snippets) + check)
    assert "(1024, 256)" in printed
    assert {path.name for path in folder.iterdir()} > {"photo.json", "keypoints.png", "matches.png", "features.h5"}


# ---- The page of the other package -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(test_data):
    """Its lines."""
    for path in sorted((test_data / "documents").glob("001_*.txt")):
        return path.read_text().splitlines()
    pytest.skip("there is no copy of the page")


def parses(lines):
    """Whether it is Python, and does not end in a heading of one word."""
    try:
        body = ast.parse("\n".join(lines)).body
    except SyntaxError:
        return False
    return len(body) > 0 and not (isinstance(body[-1], ast.Expr) and isinstance(body[-1].value, ast.Name))


def snippet(page, first):
    """The Python that begins with the first such line: as many lines as parse."""
    start = next(number for number, line in enumerate(page) if line.startswith(first))
    ends = [end for end in range(start + 1, min(start + 20, len(page) + 1)) if parses(page[start:end])]
    assert ends, first
    return "\n".join(page[start : ends[-1]])


def signature(page, call):
    """Names and defaults of a call that the page describes, with "*" where arguments are by name from there on."""
    text = "\n".join(page)
    start = text.index(call) + len(call)
    inside = re.sub(r"#.*", "", text[start : text.index("\n)", start)])
    arguments = ast.parse(f"def f(*, {inside.replace('*,', '')}): pass").body[0].args
    values = [eval(compile(ast.Expression(value), "page", "eval")) for value in arguments.kw_defaults]
    return dict(zip([argument.arg for argument in arguments.kwonlyargs], values, strict=True))


def test_its_quick_start(page, folder):
    pytest.importorskip("torch")
    code = snippet(page, "from tt_superpoint import SuperPoint")
    assert DEMO in code
    assert "(1024, 256)" in run(folder, code) or "torch.Size([1024, 256])" in run(folder, code)


def test_its_other_snippets(page, folder):
    pytest.importorskip("torch")
    pytest.importorskip("cv2")
    matching = snippet(page, "import torch")
    frames = snippet(page, "import cv2")
    preparing = snippet(page, "model.warmup(nms_radius=3)")
    calls = snippet(page, "out  = model(image")
    assert ".T" in matching and "bgr=True" in frames and "num_workers=8" in preparing and "model([image1" in calls
    calls = calls.replace(", ...]", "]")
    code = f"""
{matching}
assert pairs.shape[1:] == (2, 2) and len(pairs) > 0 and pairs.dtype == torch.float32
assert bool((a.descriptors.norm(dim=1) - 1).abs().max() < 1e-5)
model = SuperPoint.from_pretrained()
{frames}
assert len(kps) == len(out) > 0
image = image1 = image2 = "photo.jpg"
{calls}
assert len(out) == len(outs[0]) == len(outs[1]) > 0
{preparing}
assert model.warmup(nms_radius=3) == {{}}
"""
    run(folder, code)


def test_its_signature(page):
    import inspect

    from tt_superpoint import SuperPoint

    told = signature(page, "SuperPoint.from_pretrained(\n")
    parameters = inspect.signature(SuperPoint.from_pretrained).parameters
    assert told == {name: parameter.default for name, parameter in parameters.items()}
    assert list(told) == list(parameters)


def test_its_fields(page, folder):
    """Every field of the table of results exists, with the types that it says."""
    pytest.importorskip("torch")
    from tt_superpoint import SuperPoint

    start = page.index("SuperPointOutput")
    table = [line.split("\t") for line in page[start : start + 12] if line.count("\t") == 2]
    names = [row[0] for row in table if row[0] != "field"]
    assert names == ["keypoints", "scores", "descriptors", "image_size", "scale", "device_nms", "timing_ms"]
    with SuperPoint.from_pretrained(folder / "weights", warmup_variants="minimal") as model:
        out = model(np.zeros((20, 30), np.uint8))
    for name, kind, _ in table[1:]:
        value = getattr(out, name)
        if kind.startswith("torch.float32"):
            assert str(value.dtype) == "torch.float32", name
        elif kind.startswith("("):
            assert [type(item).__name__ for item in value] == kind.strip("()").split(", "), name
        else:
            assert type(value).__name__ == kind, name
