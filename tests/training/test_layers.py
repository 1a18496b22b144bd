# SPDX-License-Identifier: Apache-2.0
"""The layers of the training in C against PyTorch's own in float64: outputs, gradients, statistics."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed", exc_type=ImportError)

import layers  # noqa: E402

TOLERANCE = 2e-5  # of the largest value

SHAPES = {  # pictures, inputs, outputs, height, width, pooled
    "first": (2, 1, 64, 24, 32, False),
    "pooled": (2, 64, 64, 24, 32, True),
    "cut tiles": (2, 64, 128, 15, 21, False),
    "pooled, cut tiles": (3, 128, 128, 14, 22, True),
    "head": (3, 128, 256, 15, 20, False),
    "smaller than a tile": (1, 64, 64, 3, 2, False),
}


def make(shape, dtype):
    count, inputs, outputs, height, width, _ = shape
    torch.manual_seed(9)
    x = torch.randn(count, inputs, height, width).to(dtype).requires_grad_(inputs > 1)
    convolution, norm = torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs, momentum=0.1)
    for values, low, high in ((norm.weight, 0.5, 1.5), (norm.bias, -0.5, 0.5), (norm.running_mean, -0.5, 0.5),
                              (norm.running_var, 0.5, 2)):
        torch.nn.init.uniform_(values, low, high)
    return x, convolution.to(dtype), norm.to(dtype)


def by_pytorch(x, convolution, norm, pool):
    values = torch.relu(norm(convolution(x)))
    return torch.nn.functional.max_pool2d(values, 2) if pool else values


def results(layer, shape, dtype, training):
    """Outputs, gradients and what the normalisation remembers."""
    x, convolution, norm = make(shape, dtype)
    norm.train(training)
    values = layer(x, convolution, norm, shape[5])
    found = {"outputs": values, "mean": norm.running_mean, "variance": norm.running_var}
    if training:
        direction = torch.randn(values.shape, generator=torch.Generator().manual_seed(2)).to(dtype)
        values.backward(direction)
        found |= {"weight": convolution.weight.grad, "gain": norm.weight.grad, "bias": norm.bias.grad}
        if x.requires_grad:
            found["inputs"] = x.grad
    return found


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_layer_is_that_of_pytorch(shape, training):
    mine = results(layers.normed_convolution, shape, torch.float32, training)
    theirs = results(by_pytorch, shape, torch.float64, training)
    assert mine.keys() == theirs.keys()
    for name, expected in theirs.items():
        assert (mine[name] - expected).abs().max() <= TOLERANCE * expected.abs().max(), name


def test_result_does_not_depend_on_the_layout_of_inputs():
    x, convolution, norm = make(SHAPES["pooled"], torch.float32)
    usual = layers.normed_convolution(x, convolution, norm, True)
    other = layers.normed_convolution(x.to(memory_format=torch.channels_last), convolution, norm, True)
    assert torch.equal(usual, other)
