# SPDX-License-Identifier: Apache-2.0
"""The network that is trained, with batch normalisation in PyTorch, against Lensing with the exported file."""
import subprocess

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

import network  # noqa: E402
from golden import synthetic  # noqa: E402

HEIGHT, WIDTH, BORDER = 480, 640, 4


@pytest.fixture(scope="module")
def trained():
    """A network in which every normalisation does something, as after training; with keypoints to find."""
    torch.manual_seed(5)
    model = network.SuperPoint()
    for norm in model.norms.values():
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.uniform_(norm.bias, -0.3, 0.3)
        torch.nn.init.uniform_(norm.running_mean, -0.3, 0.3)
        torch.nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return model.eval()


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(6).integers(0, 256, (HEIGHT, WIDTH), np.uint8)


def suppressed(scores):
    """Maxima of 9 x 9 pixels away from the border, best first: rows, columns."""
    highest = torch.nn.functional.max_pool2d(scores[None, None], 9, 1, 4)[0, 0]
    kept = torch.zeros_like(scores, dtype=torch.bool)
    inner = slice(BORDER, -BORDER), slice(BORDER, -BORDER)
    kept[inner] = ((scores == highest) & (scores > 0.005))[inner]
    rows, columns = torch.nonzero(kept, as_tuple=True)
    order = torch.argsort(scores[rows, columns], descending=True)
    return rows[order], columns[order]


def test_exported_weights_give_the_same_features(program, trained, picture, tmp_path):
    tensors = network.fold(trained.state_dict())
    assert {name: tuple(tensor.shape) for name, tensor in tensors.items()} == \
        {name: tensor.shape for name, tensor in synthetic.weights().items()}
    synthetic.write_safetensors(tmp_path / "weights.safetensors",
                                {name: tensor.numpy() for name, tensor in tensors.items()})
    Image.fromarray(picture).save(tmp_path / "picture.png")
    subprocess.run([program, "detect", "--weights", tmp_path / "weights.safetensors", "--max-keypoints", "200",
                    "--output", tmp_path / "found.npz", tmp_path / "picture.png"], check=True)
    with torch.no_grad():
        features = trained.features(torch.from_numpy(picture.astype(np.float32) / 255)[None, None])
        scores = network.score_map(trained.score_logits(features))[0]
        rows, columns = (part[:200] for part in suppressed(scores))
        points = torch.stack([columns, rows], 1).float()
        descriptors = network.sample_descriptors(trained.descriptors(features), points[None], HEIGHT, WIDTH)[0]
    with np.load(tmp_path / "found.npz") as found:
        place = {tuple(point): i for i, point in enumerate(found["keypoints"])}
        order = np.array([place[tuple(point)] for point in points.numpy()])
        expected = scores[rows, columns].numpy()
        # PyTorch adds in an order that depends on the CPU, so scores closer than 1e-6 may come the other way round.
        assert np.abs(expected[order] - expected).max() < 1e-6
        assert np.allclose(found["scores"][order], expected, rtol=1e-3, atol=1e-6)
        assert (found["descriptors"][order] * descriptors.numpy()).sum(1).min() > 0.99999


def test_unfolded_network_is_the_same(trained):
    """Folding and unfolding change what is stored, not what is computed: on the pictures themselves nothing, and folded
    again it is the same file."""
    pictures = torch.rand(2, 1, 64, 80, generator=torch.manual_seed(8))
    tensors = network.fold(trained.state_dict())
    unfolded = network.unfold(tensors, pictures)
    again = network.fold(unfolded.state_dict())
    for name, tensor in tensors.items():
        assert torch.allclose(again[name], tensor, rtol=1e-5, atol=1e-6), name
    unfolded.train()  # the statistics of the pictures are those that it has
    with torch.no_grad():
        for head in ("score_logits", "descriptors"):
            expected = getattr(trained, head)(trained.features(pictures))
            found = getattr(unfolded, head)(unfolded.features(pictures))
            assert torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * expected.abs().max().item()), head


def test_exported_weights_can_be_trained_on(trained, tmp_path):
    tensors = network.fold(trained.state_dict())
    synthetic.write_safetensors(tmp_path / "exported.safetensors",
                                {name: tensor.numpy() for name, tensor in tensors.items()})
    crops = np.random.default_rng(9).integers(0, 256, (20, 64, 80), np.uint8)
    loaded = network.load(tmp_path / "exported.safetensors", crops)
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    again = network.fold(loaded.state_dict())
    assert all(torch.allclose(again[name], tensor, rtol=1e-5, atol=1e-6) for name, tensor in tensors.items())
