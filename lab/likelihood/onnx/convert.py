"""Writes the graph of a Qwen2 model for ONNX Runtime: `python convert.py MODEL.gguf MODEL.onnx`.

The weights are those of the GGUF file, written anew in 8 bits with a scale for each 32 of them; docs/harm.md compares the
results with those of llama.cpp. The cache of keys and values is a pair of inputs and outputs of each layer, of which the
caller passes the same memory as both.
"""

import sys

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The longest context, in tokens.
CONTEXT = 32768 + 512
BLOCK = 32
CONTRIB = "com.microsoft"


class Graph:
    """Collects nodes and constants."""

    def __init__(self, source):
        reader = gguf.GGUFReader(source)
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.fields = reader.fields
        if self.field("general.architecture") != "qwen2":
            raise SystemExit(f"{source} is of the architecture {self.field('general.architecture')}, and only qwen2 is known here")
        self.nodes, self.constants = [], []

    def field(self, name):
        return self.fields[name].contents()

    def weights(self, name):
        tensor = self.tensors[name]
        return np.ascontiguousarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type)).astype(np.float32)

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, operator, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, outputs, **attributes))

    def linear(self, source, weights, target, bias=()):
        """One product with the rows of all named weights below each other."""
        matrix = np.concatenate([self.weights(name) for name in weights])
        rows, columns = matrix.shape
        blocks = matrix.reshape(rows, columns // BLOCK, BLOCK)
        scales = np.maximum(np.abs(blocks).max(-1) / 127, 1e-8).astype(np.float32)
        quantized = (np.rint(blocks / scales[..., None]) + 128).astype(np.uint8)
        inputs = [source, self.constant(f"{target}.weights", quantized), self.constant(f"{target}.scales", scales.reshape(-1))]
        product = f"{target}.product" if bias else target
        # Accuracy level 4: the activations are quantized to 8 bits as well, as in llama.cpp.
        attributes = {"K": columns, "N": rows, "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        self.node("MatMulNBits", inputs, [product], domain=CONTRIB, **attributes)
        if bias:
            self.constant(f"{target}.bias", np.concatenate([self.weights(name) for name in bias]))
            self.node("Add", [product, f"{target}.bias"], [target])


def convert(source, target):
    graph = Graph(source)
    layers = graph.field("qwen2.block_count")
    heads, shared = graph.field("qwen2.attention.head_count"), graph.field("qwen2.attention.head_count_kv")
    size = graph.field("qwen2.embedding_length") // heads
    epsilon = float(graph.field("qwen2.attention.layer_norm_rms_epsilon"))
    angles = np.arange(CONTEXT)[:, None] * float(graph.field("qwen2.rope.freq_base")) ** (-np.arange(0, size, 2) / size)
    graph.constant("cos", np.cos(angles).astype(np.float32))
    graph.constant("sin", np.sin(angles).astype(np.float32))
    graph.constant("embedding", graph.weights("token_embd.weight"))
    graph.constant("0.norm", graph.weights("blk.0.attn_norm.weight"))
    graph.node("Gather", ["embedding", "tokens"], ["0.in"])
    graph.node("SimplifiedLayerNormalization", ["0.in", "0.norm"], ["0.normed"], epsilon=epsilon, axis=-1)
    whole = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
    inputs = [whole("tokens", TensorProto.INT64, [1, "new"]), whole("rows", TensorProto.INT64, ["rows"])]
    inputs += [whole("last", TensorProto.INT32, [1]), whole("total", TensorProto.INT32, [1])]
    outputs = [whole("logits", TensorProto.FLOAT, [1, "rows", "words"])]
    for at in range(layers):
        block = f"blk.{at}."
        names = [f"{block}attn_{part}" for part in "qkv"]
        graph.linear(f"{at}.normed", [f"{name}.weight" for name in names], f"{at}.qkv", [f"{name}.bias" for name in names])
        for part in ("keys", "values"):
            shape = [1, shared, "context", size]
            inputs.append(whole(f"{at}.{part}", TensorProto.FLOAT, shape))
            outputs.append(whole(f"{at}.{part}.after", TensorProto.FLOAT, shape))
        attention = [f"{at}.qkv", "", "", f"{at}.keys", f"{at}.values", "last", "total", "cos", "sin"]
        results = [f"{at}.attention", f"{at}.keys.after", f"{at}.values.after"]
        graph.node("GroupQueryAttention", attention, results, domain=CONTRIB, num_heads=heads, kv_num_heads=shared, do_rotary=1)
        graph.linear(f"{at}.attention", [f"{block}attn_output.weight"], f"{at}.attended")
        graph.constant(f"{at}.ffn.norm", graph.weights(f"{block}ffn_norm.weight"))
        skip = lambda added, norm, normed, total: graph.node(
            "SkipSimplifiedLayerNormalization", [*added, norm], [normed, "", "", total], domain=CONTRIB, epsilon=epsilon
        )
        skip([f"{at}.in", f"{at}.attended"], f"{at}.ffn.norm", f"{at}.ffn", f"{at}.middle")
        graph.linear(f"{at}.ffn", [f"{block}ffn_gate.weight"], f"{at}.gate")
        graph.linear(f"{at}.ffn", [f"{block}ffn_up.weight"], f"{at}.up")
        # With alpha 1 this is x * sigmoid(x).
        graph.node("QuickGelu", [f"{at}.gate"], [f"{at}.gated"], domain=CONTRIB, alpha=1.0)
        graph.node("Mul", [f"{at}.gated", f"{at}.up"], [f"{at}.wide"])
        graph.linear(f"{at}.wide", [f"{block}ffn_down.weight"], f"{at}.out")
        after = "output_norm.weight" if at + 1 == layers else f"blk.{at + 1}.attn_norm.weight"
        graph.constant(f"{at + 1}.norm", graph.weights(after))
        skip([f"{at}.middle", f"{at}.out"], f"{at + 1}.norm", f"{at + 1}.normed", f"{at + 1}.in")
    graph.node("Gather", [f"{layers}.normed", "rows"], ["asked"], axis=1)
    graph.linear("asked", ["output.weight" if "output.weight" in graph.tensors else "token_embd.weight"], "logits")
    made = helper.make_graph(graph.nodes, "qwen2", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=9)
    onnx.save(model, target, save_as_external_data=True, location=f"{target.rsplit('/', 1)[-1]}.data")


if __name__ == "__main__":
    convert(sys.argv[1], sys.argv[2])
