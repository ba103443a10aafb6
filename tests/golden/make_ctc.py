#!/usr/bin/env python3
"""Writes ctc.h5: what torch.nn.CTCLoss says in float64 about random label strings.

Usage: make_ctc.py [OUT]. Needs PyTorch, NumPy and h5py. The numbers are seeded: the same
versions write the same tables. tests/kernels/kernels_ctc.c holds the kernels against them.

  /batch   [B,2]  sequences, outputs (classes and the blank, which is output 0)
  /length  [N]    steps of every sequence, batch after batch, falling within a batch
  /labels  [N]    labels of its string
  /label   [..]   the strings one after another, labels from 1
  /score   [..]   float32 scores [steps,outputs], sequence after sequence
  /loss    [N]    float64 negative log-likelihood, inf where the string does not fit
  /grad    [..]   float32 gradient, with the layout of /score, of the sum over the strings
                  that fit of loss / max(1, labels)
"""
import os
import sys

import h5py
import numpy as np
import torch

BATCHES = 48


def steps_needed(label):
    return len(label) + sum(a == b for a, b in zip(label, label[1:]))


def random_string(rng, classes, most):
    """Often with repeats, sometimes of one class, sometimes empty."""
    count = int(rng.integers(0, most + 1))
    few = int(rng.integers(1, min(classes, 3) + 1)) if rng.random() < 0.4 else classes
    return [int(x) for x in rng.integers(1, few + 1, count)]


def random_length(rng, label):
    """As many steps as are needed, more, or too few; none for some."""
    need = steps_needed(label)
    kind = rng.random()
    if kind < 0.15:
        return need
    if kind < 0.25 and need > 0:
        return int(rng.integers(0, need))
    if kind < 0.3:
        return 0
    return need + int(rng.integers(1, 30))


def random_batch(rng, b):
    classes = (1, 2, 64)[b] if b < 3 else int(65 ** rng.random())
    sequences = []
    for _ in range(int(rng.integers(1, 9))):
        label = random_string(rng, classes, 14)
        sequences.append((random_length(rng, label), label))
    sequences.sort(key=lambda s: -s[0])
    scale = (0.1, 1, 4, 30)[b % 4]
    scores = [(scale * rng.standard_normal((T, classes + 1))).astype(np.float32)
              for T, _ in sequences]
    return classes, sequences, scores


def torch_says(sequences, scores, classes):
    """Losses, and gradients as described above. A sequence at a time: torch pads."""
    losses, grads = [], []
    for (steps, label), score in zip(sequences, scores):
        x = torch.tensor(score, dtype=torch.float64, requires_grad=True)
        if steps == 0:
            losses.append(0.0 if not label else np.inf)
            grads.append(np.zeros((0, classes + 1)))
            continue
        loss = torch.nn.functional.ctc_loss(
            torch.log_softmax(x, 1)[:, None], torch.tensor([label], dtype=torch.long),
            torch.tensor([steps]), torch.tensor([len(label)]), reduction="none")[0]
        losses.append(loss.item())
        if steps >= steps_needed(label):
            (loss / max(1, len(label))).backward()
            grads.append(x.grad.numpy())
        else:
            assert np.isinf(loss.item())
            grads.append(np.zeros((steps, classes + 1)))
    return losses, grads


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "ctc.h5")
    rng = np.random.default_rng(20240601)
    table = {name: [] for name in ("batch", "length", "labels", "label", "score", "loss",
                                   "grad")}
    for b in range(BATCHES):
        classes, sequences, scores = random_batch(rng, b)
        losses, grads = torch_says(sequences, scores, classes)
        table["batch"].append((len(sequences), classes + 1))
        table["length"] += [s[0] for s in sequences]
        table["labels"] += [len(s[1]) for s in sequences]
        table["label"] += [k for s in sequences for k in s[1]]
        table["score"] += [s.ravel() for s in scores]
        table["loss"] += losses
        table["grad"] += [g.ravel() for g in grads]
    with h5py.File(out, "w") as f:
        for name in ("batch", "length", "labels", "label"):
            f[name] = np.array(table[name], np.int32)
        f["loss"] = np.array(table["loss"])
        for name in ("score", "grad"):
            f.create_dataset(name, data=np.concatenate(table[name]).astype(np.float32),
                             compression="gzip", shuffle=True)


main()
