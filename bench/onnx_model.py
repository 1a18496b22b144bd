# SPDX-License-Identifier: Apache-2.0
"""SuperPoint as an ONNX graph, built from a safetensors file without PyTorch.

The graph is what an exporter makes of the network: twelve convolutions, ReLU, max-pool, softmax and division by the
Euclidean length. Input: float32 (1, 1, 480, 640) in 0..1. Outputs: scores (1, 65, 60, 80), descriptors (1, 256, 60, 80).
"""
import json
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


TYPES = {"F32": np.float32, "F16": np.float16}


def read_safetensors(path):
    """All tensors of a safetensors file by name, in float32."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in TYPES:
            raise ValueError(f"{path}: tensor {name} is {entry['dtype']}; only {' and '.join(TYPES)} are supported here")
        begin, end = entry["data_offsets"]
        values = np.frombuffer(data[begin:end], TYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(np.float32)
    return tensors


class _Graph:
    def __init__(self, tensors):
        self.tensors = tensors
        self.nodes = []
        self.initializers = []

    def add(self, operator, *inputs, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def convolution(self, name, source, relu=True):
        for part in ("weight", "bias"):
            self.initializers.append(numpy_helper.from_array(self.tensors[f"{name}.{part}"], f"{name}.{part}"))
        kernel = self.tensors[f"{name}.weight"].shape[2]
        output = self.add("Conv", source, f"{name}.weight", f"{name}.bias", kernel_shape=[kernel, kernel],
                          pads=[kernel // 2] * 4)
        return self.add("Relu", output) if relu else output


def build(weights):
    """The model as bytes that onnxruntime.InferenceSession takes."""
    graph = _Graph(read_safetensors(weights))
    x = "picture"
    for block in range(4):
        x = graph.convolution(f"encoder.conv_blocks.{block}.conv_a", x)
        x = graph.convolution(f"encoder.conv_blocks.{block}.conv_b", x)
        if block < 3:
            x = graph.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    scores = graph.convolution("keypoint_decoder.conv_score_a", x)
    scores = graph.convolution("keypoint_decoder.conv_score_b", scores, relu=False)
    scores = graph.add("Softmax", scores, axis=1)
    descriptors = graph.convolution("descriptor_decoder.conv_descriptor_a", x)
    descriptors = graph.convolution("descriptor_decoder.conv_descriptor_b", descriptors, relu=False)
    descriptors = graph.add("Div", descriptors, graph.add("ReduceL2", descriptors, axes=[1], keepdims=1))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "superpoint",
            [helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 1, 480, 640])],
            [helper.make_tensor_value_info(scores, TensorProto.FLOAT, [1, 65, 60, 80]),
             helper.make_tensor_value_info(descriptors, TensorProto.FLOAT, [1, 256, 60, 80])],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    return model.SerializeToString()
