# SPDX-License-Identifier: Apache-2.0
"""The network in other software. Every function takes weights, threads and precision, and returns a function from the
picture, float32 (1, 1, 480, 640) in 0..1, to the 65 class probabilities of every cell, (1, 65, 60, 80), and the
descriptors, (1, 256, 60, 80), each of length 1, as that software gives them."""
import pathlib
import struct
import tempfile

import numpy as np
import onnx_model

BLOCKS = 4


def onnxruntime(weights, threads, _precision):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(onnx_model.build(weights), options, providers=["CPUExecutionProvider"])
    return lambda picture: session.run(None, {"picture": picture})


def openvino(weights, threads, precision):
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision]}
    core = openvino.Core()
    request = core.compile_model(core.read_model(onnx_model.build(weights)), "CPU", settings).create_infer_request()

    def run(picture):
        result = request.infer({"picture": picture}, share_inputs=True, share_outputs=True)
        return [result[0], result[1]]

    return run


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def torch_network(weights, channels_last):
    """The network as a module, for tensors as read from the file."""
    import torch
    from torch import nn

    tensors = onnx_model.read_safetensors(weights)

    def convolution(name):
        weight, bias = (torch.tensor(tensors[f"{name}.{part}"]) for part in ("weight", "bias"))
        layer = nn.Conv2d(weight.shape[1], weight.shape[0], weight.shape[2], padding=weight.shape[2] // 2)
        layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        return layer

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            encoder = []
            for block in range(BLOCKS):
                for half in ("a", "b"):
                    encoder += [convolution(f"encoder.conv_blocks.{block}.conv_{half}"), nn.ReLU(inplace=True)]
                if block < BLOCKS - 1:
                    encoder.append(nn.MaxPool2d(2, 2))
            self.encoder = nn.Sequential(*encoder)
            self.score = nn.Sequential(convolution("keypoint_decoder.conv_score_a"), nn.ReLU(inplace=True),
                                       convolution("keypoint_decoder.conv_score_b"), nn.Softmax(1))
            self.descriptor = nn.Sequential(convolution("descriptor_decoder.conv_descriptor_a"), nn.ReLU(inplace=True),
                                            convolution("descriptor_decoder.conv_descriptor_b"))

        def forward(self, picture):
            features = self.encoder(picture)
            return self.score(features), nn.functional.normalize(self.descriptor(features), dim=1)

    network = Network().eval()
    return network.to(memory_format=torch.channels_last) if channels_last else network


def torch_runner(threads, precision, channels_last, network):
    import torch

    torch.set_num_threads(threads)

    def run(picture):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            tensor = torch.from_numpy(picture)
            scores, descriptors = network(tensor.to(memory_format=torch.channels_last) if channels_last else tensor)
            return [scores.float().numpy(), descriptors.float().numpy()]

    return run


def torch_eager(weights, threads, precision):
    return torch_runner(threads, precision, False, torch_network(weights, False))


def torch_channels_last(weights, threads, precision):
    return torch_runner(threads, precision, True, torch_network(weights, True))


def torch_compiled(weights, threads, precision):
    import torch

    return torch_runner(threads, precision, True, torch.compile(torch_network(weights, True)))


# ---- ncnn ------------------------------------------------------------------------------------------------------------


class NcnnModel:
    """Writes ncnn's two files: a line of text for each layer, and the weights one behind another."""

    def __init__(self, tensors):
        self.tensors, self.lines, self.blobs, self.data = tensors, [], 0, []

    def layer(self, kind, sources, targets, settings=""):
        self.lines.append(" ".join([kind, f"layer{len(self.lines)}", str(len(sources)), str(len(targets)), *sources,
                                    *targets, settings]))
        self.blobs += len(targets)

    def convolution(self, name, source, target, relu):
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        self.layer("Convolution", [source], [target], f"0={weight.shape[0]} 1={weight.shape[2]} 4={weight.shape[2] // 2} "
                                                      f"5=1 6={weight.size} 9={int(relu)}")
        self.data += [struct.pack("<I", 0), weight.tobytes(), bias.tobytes()]  # 0: float32 follows

    def write(self, folder):
        text = f"7767517\n{len(self.lines)} {self.blobs}\n" + "\n".join(self.lines) + "\n"
        (folder / "model.param").write_text(text)
        (folder / "model.bin").write_bytes(b"".join(self.data))


def ncnn_model(weights):
    model = NcnnModel(onnx_model.read_safetensors(weights))
    model.layer("Input", [], ["picture"])
    source = "picture"
    for block in range(BLOCKS):
        for half in ("a", "b"):
            target = f"block{block}{half}"
            model.convolution(f"encoder.conv_blocks.{block}.conv_{half}", source, target, True)
            source = target
        if block < BLOCKS - 1:
            model.layer("Pooling", [source], [f"pool{block}"], "0=0 1=2 2=2")
            source = f"pool{block}"
    model.layer("Split", [source], ["to_score", "to_descriptor"])
    model.convolution("keypoint_decoder.conv_score_a", "to_score", "score_a", True)
    model.convolution("keypoint_decoder.conv_score_b", "score_a", "logits", False)
    model.layer("Softmax", ["logits"], ["scores"], "0=0 1=1")
    model.convolution("descriptor_decoder.conv_descriptor_a", "to_descriptor", "descriptor_a", True)
    model.convolution("descriptor_decoder.conv_descriptor_b", "descriptor_a", "descriptor_b", False)
    # Along the channels only, one factor for all, 1; lengths not below 1e-12.
    model.layer("Normalize", ["descriptor_b"], ["descriptors"], "0=0 1=1 2=1e-12 3=1 4=1 9=1")
    model.data.append(struct.pack("<f", 1.0))
    return model


def ncnn(weights, threads, precision):
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = precision == "bf16"
    with tempfile.TemporaryDirectory() as folder:
        ncnn_model(weights).write(pathlib.Path(folder))
        net.load_param(f"{folder}/model.param")
        net.load_model(f"{folder}/model.bin")

    def run(picture):
        extractor = net.create_extractor()
        extractor.input("picture", ncnn.Mat(picture[0]))
        return [np.array(extractor.extract(name)[1])[None] for name in ("scores", "descriptors")]

    return run


# What compare.py calls them, the function, its precision, and the module that it needs.
PEERS = {
    "ONNX Runtime": (onnxruntime, "fp32", "onnxruntime"),
    "OpenVINO": (openvino, "fp32", "openvino"),
    "PyTorch": (torch_eager, "fp32", "torch"),
    "PyTorch, channels last": (torch_channels_last, "fp32", "torch"),
    "PyTorch, compiled": (torch_compiled, "fp32", "torch"),
    "ncnn": (ncnn, "fp32", "ncnn"),
    "OpenVINO, bf16": (openvino, "bf16", "openvino"),
    "PyTorch, bf16 autocast": (torch_channels_last, "bf16", "torch"),
    "PyTorch, bf16 autocast, compiled": (torch_compiled, "bf16", "torch"),
    "ncnn, bf16": (ncnn, "bf16", "ncnn"),
}
