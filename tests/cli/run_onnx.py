#!/usr/bin/env python3
"""run_onnx.py [MODEL.onnx DATA PREDICTIONS]...

The other side of tests/cli/onnx.sh: each file passes ONNX's checker, and onnxruntime computes
from it what `predict --raw` wrote, in batches of several kinds: all sequences at once, each
alone, and with garbage beyond the ends. Exit 77 where a module is missing.
"""
import json
import sys

try:
    import h5py
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(missing)
    sys.exit(77)

BOUND = 1e-5  # of the largest score


def open_model(path):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def batch(sequences, filler):
    """x, filled up to the longest sequence, and lengths."""
    lengths = np.array([len(s) for s in sequences], np.int64)
    first = sequences[0]
    kind = np.int64 if first.dtype.kind in "iu" else np.float32
    x = np.full((len(sequences), max(1, lengths.max())) + first.shape[1:], filler, kind)
    for row, sequence in zip(x, sequences):
        row[:len(sequence)] = sequence
    return {"x": x, "lengths": lengths}


def scores(session, sequences, filler, stepwise):
    """As predict writes them: sequences or steps, one after the other."""
    feed = batch(sequences, filler)
    out, = session.run(["scores"], feed)
    if not stepwise:
        return out
    for row, length in zip(out, feed["lengths"]):
        assert not row[length:].any(), "scores beyond the end are not 0"
    return np.concatenate([row[:length] for row, length in zip(out, feed["lengths"])])


def check(path, data, predictions):
    session = open_model(path)
    with h5py.File(data) as file:
        inputs, offsets = file["inputs"][...], file["offsets"][...]
        task = file.attrs["task"]
    with h5py.File(predictions) as file:
        want = file["outputs"][...]
    stepwise = task in ("tag", "regress_steps", "multilabel", "lm")
    parts = [inputs[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
    garbage = np.nan if inputs.dtype.kind == "f" else 1
    runs = {
        "all": scores(session, parts, 0, stepwise),
        "garbage": scores(session, parts, garbage, stepwise),
        "alone": np.concatenate([scores(session, [p], 0, stepwise) for p in parts]),
    }
    for kind, got in runs.items():
        assert got.shape == want.shape, (path, kind, got.shape, want.shape)
        worst = np.abs(got - want).max() / np.abs(want).max()
        assert worst < BOUND, (path, kind, worst)
    meta = session.get_modelmeta().custom_metadata_map
    assert meta["rnn_dist.task"] == task, (path, meta)
    if "rnn_dist.classes" in meta:
        assert len(json.loads(meta["rnn_dist.classes"])) == want.shape[1], path


if __name__ == "__main__":
    for model in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
        check(*model)
    print(f"{len(sys.argv[1::3])} models")
