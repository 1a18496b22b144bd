# SPDX-License-Identifier: Apache-2.0
"""A 3x3 convolution with batch normalisation, ReLU and pooling as one layer, by layers.c.

PyTorch's own convolutions take several times as long on a CPU without bfloat16: they compute every product, where
Winograd's filtering needs a quarter of them. layers.c is compiled with the C compiler of the system (CC, or cc) for the
CPU of this machine when it is first needed."""
import ctypes
import functools
import os
import pathlib
import subprocess
import tempfile

import torch

SOURCE = pathlib.Path(__file__).resolve().with_name("layers.c")
HEADERS = SOURCE.parents[1] / "src"
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-fPIC", "-shared", "-Wno-psabi")
EPSILON = 1e-5


@functools.cache
def library():
    """layers.c, compiled."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lensing-training-"))
    file = folder / "layers.so"
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, *FLAGS, f"-I{HEADERS}", str(SOURCE), "-o", str(file)], check=True)
    loaded = ctypes.CDLL(file)
    file.unlink()
    folder.rmdir()
    return loaded


def call(name, *arguments):
    """A function of layers.c; tensors are given as their first elements, sizes of pictures as ints."""
    function = getattr(library(), name)
    function.restype = None
    function(*(ctypes.c_void_p(value.data_ptr()) if isinstance(value, torch.Tensor) else ctypes.c_int(value)
               for value in arguments), ctypes.c_int(torch.get_num_threads()))


def pixels(values):
    """Values (n, c, h, w) as (n, h, w, c), without a copy if they lie so."""
    return values.permute(0, 2, 3, 1).contiguous()


def planes(values):
    return values.permute(0, 3, 1, 2)


def convolve(x, weight):
    """x (n, h, w, c) -> (n, h, w, outputs), and the sums and squares of each output."""
    count, height, width, inputs = x.shape
    outputs = len(weight)
    y = torch.empty(count, height, width, outputs)
    statistics = torch.empty(2, outputs, dtype=torch.float64)
    if inputs == 1:
        call("convolve_first", x, weight, count, height, width, y, statistics)
    else:
        call("convolve", x, weight, count, height, width, inputs, outputs, 0, y, statistics)
    return y, statistics


def normalise(y, scale, shift, pool):
    """ReLU of scale * y + shift, (n, h, w, c) or half as high and wide."""
    count, height, width, channels = y.shape
    side = 2 if pool else 1
    out = torch.empty(count, height // side, width // side, channels)
    call("normalise", y, count * height, width, channels, scale, shift, int(pool), out)
    return out


class Layer(torch.autograd.Function):
    """x (n, c, h, w), normalised over the batch; also returns mean and variance of the convolution's outputs."""

    @staticmethod
    def forward(ctx, x, weight, gain, bias, pool):
        x, weight = pixels(x), weight.contiguous()
        y, statistics = convolve(x, weight)
        mean, square = statistics / (y.numel() // y.shape[3])
        variance = square - mean * mean
        deviation = (variance + EPSILON).sqrt()
        scale = (gain / deviation).float()
        shift = (bias - mean * scale).float()
        ctx.save_for_backward(x, weight, y, scale, shift, mean, deviation)
        ctx.pool = pool
        ctx.mark_non_differentiable(mean, variance)
        return planes(normalise(y, scale, shift, pool)), mean, variance

    @staticmethod
    def backward(ctx, gradient, *_):
        x, weight, y, scale, shift, mean, deviation = ctx.saved_tensors
        gradient = pixels(gradient)
        count, height, width, outputs = y.shape
        shape = (count * height, width, outputs, scale, shift, int(ctx.pool))
        sums = torch.empty(2, outputs, dtype=torch.float64)
        call("normalise_gradient_sums", y, gradient, *shape, sums)
        total, product = sums[0], (sums[1] - mean * sums[0]) / deviation
        slope = -scale * product / (count * height * width) / deviation
        constant = -scale * total / (count * height * width) - slope * mean
        factors = torch.stack([constant, slope]).float()
        dy = torch.empty_like(y)
        call("normalise_gradient", y, gradient, *shape, factors, dy)
        dx, dweight = None, torch.empty_like(weight)
        if x.shape[3] == 1:
            call("first_weights_gradient", x, dy, count, height, width, dweight)
        else:
            inputs = x.shape[3]
            call("weights_gradient", x, dy, count, height, width, inputs, outputs, dweight)
            dx = torch.empty_like(x)
            ignored = torch.empty(2, inputs, dtype=torch.float64)
            call("convolve", dy, weight, count, height, width, outputs, inputs, 1, dx, ignored)
            dx = planes(dx)
        return dx, dweight, product.float(), total.float(), None


def normed_convolution(x, convolution, norm, pool):
    """ReLU of norm(convolution(x)), pooled or not. In training the normalisation is the batch's, and its running
    statistics follow; the convolution's bias then changes nothing but them, and gets no gradient."""
    if norm.training:
        values, mean, variance = Layer.apply(x, convolution.weight, norm.weight, norm.bias, pool)
        with torch.no_grad():
            count = x.shape[0] * x.shape[2] * x.shape[3]
            norm.running_mean.lerp_((mean + convolution.bias).float(), norm.momentum)
            norm.running_var.lerp_((variance * (count / (count - 1))).float(), norm.momentum)
            norm.num_batches_tracked += 1
        return values
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    shift = norm.bias + (convolution.bias - norm.running_mean) * scale
    return planes(normalise(convolve(pixels(x), convolution.weight.contiguous())[0], scale, shift, pool))
