# SPDX-License-Identifier: Apache-2.0
"""`lensing match`."""
import json

import numpy as np
import pytest
from PIL import Image

from cli.tool import names_in, npz, one_error, without_times


def reference_matches(first, second, ratio, min_similarity):
    """Mutual nearest neighbours in numpy, with the keypoints that are not near a limit."""
    similarity = first.astype(np.float64) @ second.astype(np.float64).T
    distance = np.sqrt(np.maximum(0, 2 - 2 * similarity))
    nearest = similarity.argmax(1)
    back = similarity.argmax(0)
    matches = set()
    for i, j in enumerate(nearest):
        others = np.delete(distance[i], j)
        if back[j] == i and (ratio == 1 or distance[i, j] < ratio * others.min()) and similarity[i, j] >= min_similarity:
            matches.add((i, int(j)))
    return matches, similarity


@pytest.mark.parametrize("ratio,min_similarity", [(1, -1), (0.8, -1), (1, 0.9), (0.95, 0.5)])
def test_match(tool, photos, ratio, min_similarity):
    code, out, err = tool(
        "match", "a.png", "c.png", "-w", tool.weights, "-n", 200, "--ratio", ratio, "--min-similarity", min_similarity
    )
    assert (code, err) == (0, "") and out.count(b"\n") == 1
    result = json.loads(out)
    assert list(result) == ["first", "second", "match_params", "num_matches", "matches"]
    assert result["match_params"] == {"ratio": ratio, "min_similarity": min_similarity}
    single = tool.lines("a.png", "c.png", "-n", 200)
    for name, alone in zip(("first", "second"), single):
        assert {**result[name], "timing_ms": 0} == {**alone, "timing_ms": 0}
    assert tool.detect("a.png", "c.png", "-n", 200, "--format", "npz", "-o", "npz/")[0] == 0
    descriptors = [npz((tool.folder / "npz" / f"{name}.png.npz").read_bytes())["descriptors"] for name in "ac"]
    expected, similarity = reference_matches(*descriptors, ratio, min_similarity)
    found = {(i, j) for i, j, _ in result["matches"]}
    assert result["num_matches"] == len(result["matches"]) == len(found)
    assert len(found ^ expected) <= len(expected) // 100  # rounding near the limits
    for i, j, value in result["matches"]:
        assert abs(value - similarity[i, j]) < 2e-6
    assert result["matches"] == sorted(result["matches"])


def test_match_of_an_image_with_itself(tool, photo):
    code, out, err = tool("match", photo, "-", "-w", tool.weights, input=(tool.folder / photo).read_bytes())
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["second"]["file"] == "-"
    count = result["first"]["num_keypoints"]
    # Flat areas give many keypoints one descriptor; they match each other just as well.
    assert count > 50 and len(result["matches"]) >= 0.8 * count
    assert np.mean([i == j for i, j, _ in result["matches"]]) >= 0.8
    assert all(value > 0.9999 for _, _, value in result["matches"])


def test_match_outputs(tool, photos):
    code, out, err = tool("match", "a.png", "c.png", "-w", tool.weights, "-o", "m.json", "--draw", "m.png", "--descriptors")
    assert (code, out, err) == (0, b"", "")
    result = json.loads((tool.folder / "m.json").read_text())
    assert result["first"]["descriptors"]["shape"] == [result["first"]["num_keypoints"], 256]
    with Image.open(tool.folder / "m.png") as image:
        assert image.format == "PNG" and image.width >= 2 * 96
        image.load()
    code, out, err = tool("match", "a.png", "c.png", "-w", tool.weights, "-o", "-", "-n", "0")
    assert code == 0 and json.loads(out)["matches"] == []


def test_match_with_a_bad_image(tool, photo):
    code, out, err = tool("match", photo, "missing.png", "-w", tool.weights, "-o", "o.json")
    assert (code, out) == (1, b"")
    assert one_error(err) == "missing.png: cannot open: No such file or directory"
    code, out, err = tool("match", "gone.png", "missing.png", "-w", tool.weights)
    assert (code, out) == (1, b"") and err.count("\n") == 2
    assert names_in(tool.folder) == [photo]


def test_match_threads(tool, photos):
    results = {without_times(tool("match", "a.png", "c.png", "-w", tool.weights, "-t", t)[1]) for t in (1, 2, 3, 8)}
    assert len(results) == 1
