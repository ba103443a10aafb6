"""Data files, training and predictions of rnn_dist from Python.

    import rnn_dist
    rnn_dist.write_data("train.h5", series, labels)
    records = rnn_dist.train(data="train.h5", run_dir="run", hidden=64, epochs=20)
    rnn_dist.predict("run", data="test.h5", out="scores.h5")
    scores = rnn_dist.read_predictions("scores.h5")

One file to copy beside your own. It needs NumPy and, for data and predictions, h5py. All
work is done by the program: options are those of `rnn_dist COMMAND --help`, with _ for -,
and True or False for switches. The environment variable RNN_DIST names the program.
"""
import json
import os
import subprocess

import numpy as np

__all__ = ["Error", "run", "write_data", "read_predictions", "train", "evaluate", "predict"]

_PER_STEP = ("tag", "regress_steps", "multilabel", "lm", "ctc")


class Error(RuntimeError):
    """The program failed: what it said, and its exit status."""

    def __init__(self, status, message):
        super().__init__(message or f"exit status {status}")
        self.status = status


def _arguments(options):
    for name, value in options.items():
        option = name.replace("_", "-")
        if value is True or value is False:
            yield f"--{option}" if value else f"--no-{option}"
        elif value is not None:
            yield f"--{option}={value}"


def run(command, *operands, ranks=1, **options):
    """What a command prints. ranks: processes, started by mpirun."""
    program = [os.environ.get("RNN_DIST", "rnn_dist")]
    if ranks > 1:
        program = ["mpirun", "-np", str(ranks), "--bind-to", "none"] + program
    done = subprocess.run(
        program + [command, *_arguments(options), "--", *map(str, operands)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Error(done.returncode, done.stderr.strip())
    return done.stdout


def _steps(sequences):
    """All steps one after the other, and where each sequence begins."""
    arrays = [np.asarray(s) for s in sequences]
    offsets = np.cumsum([0] + [len(a) for a in arrays], dtype=np.int64)
    full = [a for a in arrays if len(a)]  # an empty one may have no shape
    return np.concatenate(full or arrays), offsets


def write_data(path, sequences, labels=None, *, task="classify", classes=None, vocab=None,
               names=None, missing=None):
    """Writes a data file (rnn_dist-data(5)).

    sequences: arrays [steps, features], or [steps] of token ids. labels: what the task asks
    for, one for each sequence, or an array of [steps, ...] for each, for ctc of [labels]; None
    for lm and for data without targets. classes: their number or their names. vocab: the
    number of tokens or the tokens. names: of the sequences. missing: "mean" if NaN among the
    features are missing values, which models trained with normalize=True then read.
    """
    import h5py
    inputs, offsets = _steps(sequences)
    if inputs.ndim not in (1, 2):
        raise ValueError(f"sequences are [steps, features] or [steps], not {inputs.shape}")
    with h5py.File(path, "w") as file:
        file.attrs["format"], file.attrs["version"] = "rnn_dist-data", 1
        file.attrs["task"] = "none" if labels is None and task != "lm" else task
        if missing is not None:
            file.attrs["missing"] = missing
        file["offsets"] = offsets
        file["inputs"] = inputs.astype(np.int32 if inputs.ndim == 1 else np.float32)
        if labels is not None:
            rows, label_offsets = _steps(labels) if task in _PER_STEP else (labels, None)
            file["targets"] = rows.astype(np.int32) if task == "ctc" else rows
            if task == "ctc":
                file["target_offsets"] = label_offsets
        for attribute, dataset, value in (("num_classes", "classes", classes),
                                          ("vocab_size", "vocab", vocab)):
            if value is None:
                continue
            if isinstance(value, (int, np.integer)):
                file.attrs[attribute] = value
            else:
                file.attrs[attribute] = len(value)
                file[dataset] = list(map(str, value))
        if names is not None:
            file["names"] = list(map(str, names))


def read_predictions(path):
    """What `predict --out` wrote: an array [outputs] for each sequence or, for tasks with
    targets per step, [steps, outputs]."""
    import h5py
    with h5py.File(path) as file:
        outputs, offsets = file["outputs"][...], file["offsets"][...]
        per_step = file.attrs["task"] in _PER_STEP
    if outputs.ndim == 3:  # padded
        return [row[:n] for row, n in zip(outputs, np.diff(offsets))]
    return np.split(outputs, offsets[1:-1]) if per_step else list(outputs)


def train(*, ranks=1, **options):
    """Trains, and returns the records of the run (metrics.jsonl) as dictionaries."""
    run("train", ranks=ranks, progress="none", **options)
    with open(os.path.join(options.get("run_dir", "run"), "metrics.jsonl"),
              encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def evaluate(model, *, ranks=1, **options):
    """What `eval` measures."""
    return json.loads(run("eval", model, ranks=ranks, json=True, **options))


def predict(model, *, ranks=1, **options):
    """Writes the files that out= and csv= name."""
    run("predict", model, ranks=ranks, **options)
