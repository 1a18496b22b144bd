# SPDX-License-Identifier: Apache-2.0
"""Matching against numpy."""
import numpy as np
import pytest

from tool import random_features

ITEM = np.dtype([("first", "<u4"), ("second", "<u4"), ("similarity", "<f4")])


def run(tool, tmp_path, first, second, ratio=1.0, min_similarity=-1.0, threads=1, **environment):
    out = tmp_path / "matches.bin"
    took = float(tool("match", first.write(tmp_path / "a"), second.write(tmp_path / "b"), out, ratio, min_similarity,
                      threads, **environment))
    return np.fromfile(out, ITEM), took


def reference(first, second, ratio=1.0, min_similarity=-1.0):
    """In double precision; argmax takes the lowest index among equals."""
    a, b = first.descriptors.astype(np.float64), second.descriptors.astype(np.float64)
    if len(a) == 0 or len(b) == 0:
        return np.zeros(0, ITEM)
    similarity = a @ b.T
    forward, backward = similarity.argmax(1), similarity.argmax(0)
    rows = np.arange(len(a))
    best = similarity[rows, forward]
    keep = (backward[forward] == rows) & (best >= min_similarity)
    if ratio < 1 and len(b) > 1:
        second_best = np.sort(similarity, 1)[:, -2]
        keep &= np.sqrt(np.maximum(0, 2 - 2 * best)) < ratio * np.sqrt(np.maximum(0, 2 - 2 * second_best))
    found = np.zeros(keep.sum(), ITEM)
    found["first"], found["second"], found["similarity"] = rows[keep], forward[keep], best[keep]
    return found


def noisy_pair(count_a, count_b, seed=0, noise=0.06):
    """Two sets that share descriptors up to noise, in another order."""
    random = np.random.default_rng(seed)
    first, second = random_features(count_a, seed), random_features(count_b, seed + 1)
    shared = min(count_a, count_b) * 2 // 3
    rows = random.permutation(count_b)[:shared]
    vectors = first.descriptors[random.permutation(count_a)[:shared]]
    vectors = vectors + noise * random.standard_normal(vectors.shape).astype(np.float32)
    second.descriptors[rows] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return first, second


def check(got, wanted):
    assert np.array_equal(got["first"], wanted["first"]) and np.array_equal(got["second"], wanted["second"])
    assert np.abs(got["similarity"] - wanted["similarity"]).max(initial=0) < 2e-6
    assert (np.abs(got["similarity"]) <= 1).all()


@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 5), (5, 1), (2, 2), (7, 9), (8, 16), (9, 17),
                                   (63, 15), (64, 64), (65, 33), (100, 1000), (1024, 1024)])
@pytest.mark.parametrize("ratio, min_similarity", [(1, -1), (0.8, -1), (0.95, 0.2), (1, 0.75)])
def test_against_numpy(tool, tmp_path, sizes, ratio, min_similarity):
    first, second = noisy_pair(*sizes, seed=sum(sizes))
    got, _ = run(tool, tmp_path, first, second, ratio, min_similarity)
    wanted = reference(first, second, ratio, min_similarity)
    check(got, wanted)
    if min(sizes) > 50:
        assert 0 < len(wanted) < min(sizes)


def test_same_bytes_on_all_cpu_paths_and_threads(tool, tmp_path):
    first, second = noisy_pair(1500, 1333, seed=9)
    wanted, _ = run(tool, tmp_path, first, second, threads=1, LENSING_CPU="c")
    check(wanted, reference(first, second))
    tried = 0
    for cpu in ("c", "avx2", "avx512"):
        for threads in (0, 1, 2, 3, 8):
            done = tool.run("match", tmp_path / "a", tmp_path / "b", tmp_path / "out", 1, -1, threads, LENSING_CPU=cpu)
            if done.returncode != 0:
                print(f"SKIP {cpu}: {done.stderr.decode().strip()}")
                break
            assert (tmp_path / "out").read_bytes() == wanted.tobytes()
            tried += 1
    assert tried >= 5


@pytest.mark.parametrize("threads", [1, 3])
def test_ties_take_the_lowest_index(tool, tmp_path, threads):
    """Every descriptor occurs many times on both sides: of equal ones the first of each side remain."""
    base = random_features(40, seed=4).descriptors
    first, second = random_features(1200, 5), random_features(1000, 6)
    first.descriptors = np.tile(base, (30, 1))
    second.descriptors = np.tile(base[::-1], (25, 1))
    got, _ = run(tool, tmp_path, first, second, threads=threads)
    assert got["first"].tolist() == list(range(40)) and got["second"].tolist() == list(range(39, -1, -1))
    got, _ = run(tool, tmp_path, first, second, ratio=0.99, threads=threads)
    assert len(got) == 0  # the second best is as near as the best


def test_one_candidate_passes_the_ratio_test(tool, tmp_path):
    got, _ = run(tool, tmp_path, random_features(5, 1), random_features(1, 2), ratio=0.1)
    assert len(got) == 1


def test_symmetric(tool, tmp_path):
    first, second = noisy_pair(300, 200, seed=3)
    there, _ = run(tool, tmp_path, first, second)
    back, _ = run(tool, tmp_path, second, first)
    back = back[np.argsort(back["second"])]
    assert np.array_equal(there["first"], back["second"]) and np.array_equal(there["second"], back["first"])
    assert np.array_equal(there["similarity"], back["similarity"])


def test_not_a_number(tool, tmp_path):
    first, second = noisy_pair(100, 100, seed=8)
    first.descriptors[10] = np.nan
    second.descriptors[20] = np.nan
    got, _ = run(tool, tmp_path, first, second)
    assert len(got) > 30 and 10 not in got["first"] and 20 not in got["second"]


@pytest.mark.parametrize("ratio, similarity, threads, message", [
    (0, 0, 0, "ratio is 0"), (1.5, 0, 0, "ratio is 1.5"), ("nan", 0, 0, "ratio is"), (1, 2, 0, "min_similarity is 2"),
    (1, "nan", 0, "min_similarity"), (1, 0, -1, "threads is -1"), (1, 0, 10000, "threads is 10000"),
])
def test_bad_options(tool, tmp_path, ratio, similarity, threads, message):
    path = random_features(3).write(tmp_path / "a")
    done = tool.run("match", path, path, tmp_path / "out", ratio, similarity, threads)
    assert done.returncode == 1 and message in done.stderr.decode()


def test_no_descriptors(tool, tmp_path):
    a = random_features(3).write(tmp_path / "a")
    b = random_features(3, descriptors=False).write(tmp_path / "b")
    done = tool.run("match", a, b, tmp_path / "out", 1, -1, 0)
    assert done.returncode == 1 and "second picture" in done.stderr.decode()
