"""Answers with `-log p` of tokens: `python serve.py MODEL.onnx CONTEXT THREADS`, one JSON object per line in and out.

In: `{"prompt": [token, ...], "answer": [token, ...]}`. Out: `{"nats": [...], "decoded": tokens that were not in the cache}`.
"""

import json
import os
import sys

import numpy as np
import onnxruntime

# Tokens that are decoded at once. Scores of one layer take heads * BATCH * context * 4 bytes.
BATCH = 128

PARENT = os.getppid()


class Model:
    """A graph of convert.py, with the keys and values of the tokens that it has read."""

    def __init__(self, path, context, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        caches = [one for one in self.session.get_inputs() if one.name.endswith((".keys", ".values"))]
        zeros = lambda shape: np.zeros((1, shape[1], context, shape[3]), np.float32)
        self.caches = {one.name: onnxruntime.OrtValue.ortvalue_from_numpy(zeros(one.shape)) for one in caches}
        self.cached = []

    def nats(self, prompt, answer):
        """Returns `-log p` of each token of the answer, and how many tokens were decoded."""
        tokens = prompt + answer
        kept = 0
        # The last token of the prompt is decoded again: its logits are those of the answer's first token.
        while kept < len(prompt) - 1 and kept < len(self.cached) and self.cached[kept] == tokens[kept]:
            kept += 1
        first, nats = len(prompt) - 1, []
        for begin in range(kept, len(tokens), BATCH):
            if os.getppid() != PARENT:
                raise SystemExit("the process that asked has ended")
            end = min(begin + BATCH, len(tokens))
            rows = np.arange(max(begin, first), min(end, len(tokens) - 1)) - begin
            # One row at least: the graph has no product with none.
            logits = self.decode(tokens[begin:end], begin, rows if rows.size else np.zeros(1, np.int64))
            for row, at in enumerate(rows + begin):
                scores = logits[row].astype(np.float64)
                top = scores.max()
                nats.append(float(top + np.log(np.exp(scores - top).sum()) - scores[tokens[at + 1]]))
        self.cached = tokens
        return nats, len(tokens) - kept

    def decode(self, tokens, begin, rows):
        binding = self.session.io_binding()
        total = begin + len(tokens)
        numbers = {"tokens": ([tokens], np.int64), "last": ([total - 1], np.int32), "total": ([total], np.int32), "rows": (rows, np.int64)}
        for name, (value, kind) in numbers.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(value, dtype=kind))
        for name, cache in self.caches.items():
            binding.bind_ortvalue_input(name, cache)
            binding.bind_ortvalue_output(f"{name}.after", cache)
        binding.bind_output("logits")
        self.session.run_with_iobinding(binding)
        # Outputs come in the order in which they were bound.
        return binding.get_outputs()[-1].numpy()[0]


if __name__ == "__main__":
    model = Model(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    for line in sys.stdin:
        asked = json.loads(line)
        nats, decoded = model.nats(asked["prompt"], asked["answer"])
        print(json.dumps({"nats": nats, "decoded": decoded}), flush=True)
