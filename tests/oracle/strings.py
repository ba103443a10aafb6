#!/usr/bin/env python3
"""The loss of label strings (ctc) and its gradient through the whole program, against PyTorch
float64.

Usage: strings.py [--random N] [--seed N] [--device cuda]
Environment: RNN_DIST is the program; RNND_CUDA_PLUGIN may be that of the emulated GPU.

A case is a batch of random sequences and strings: some just fit, some do not, some are empty.
Ten make a run, of a random model, in which each is an update. The learning rate is so small
that the parameters stay as they are, and the momentum so small that what SGD keeps of it, in
the checkpoint after each update, is the gradient. On 1, 2 and 3 ranks, every tensor of it has
to agree to 1e-5 of its norm, and the loss, which train and eval print, to 1e-6. A tensor whose
terms cancel may not: there, rounding them counts as much in PyTorch's own float32. These are
counted. Exit 77 where PyTorch or the program is missing.
"""
import argparse
import copy
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
import reference as ref  # noqa: E402
from harness import np, torch, h5py, near  # noqa: E402

GRADIENT_BOUND = 1e-5
LOSS_BOUND = 1e-6
# Errors of different sums of the same rounded terms.
CANCELS = 4
CASES = 10
TINY = "1e-30"


class Run:
    """CASES batches of as many sequences, and a model."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng([14, seed])
        classes = (1, 2, 64)[seed % 50] if seed % 50 < 3 else int(65 ** rng.random())
        spec = self.spec = ref.Spec(
            "ctc", ref.CELLS[seed % 4], int(rng.integers(1, 3)), bool(rng.random() < 0.5),
            hidden=int(rng.integers(4, 25)), outputs=classes + 1)
        self.batch, lengths, strings = int(rng.integers(1, 13)), [], []
        for i in range(CASES):
            part = [int(n) for n in rng.integers(0, (5, 13, 60)[(seed + i) % 3], self.batch)]
            lengths += part
            strings += harness.random_strings(rng, part, classes)
        if rng.random() < 0.2:
            spec.vocab, spec.embed = int(rng.integers(3, 30)), int(rng.integers(1, 12))
            inputs = rng.integers(0, spec.vocab, sum(lengths))
        else:
            spec.inputs = int(rng.integers(1, 10))
            inputs = rng.standard_normal((sum(lengths), spec.inputs)).astype(np.float32)
        self.data = ref.Data("ctc", lengths, inputs, None, spec.outputs, strings)
        self.data.vocab = spec.vocab
        self.more = ["--microbatch-tokens", int(rng.integers(1, 60))] * (rng.random() < 0.3)
        self.model = self.make_model(seed)
        self.name = (f"seed {seed}: {spec.cell}, {spec.layers} layers, {classes} classes, "
                     f"batches of {self.batch}")

    def make_model(self, seed):
        """From outputs that are nearly alike to sharp ones."""
        torch.manual_seed(seed)
        model = ref.Model(self.spec)
        with torch.no_grad():
            model.head.weight *= float(10 ** self.rng.uniform(-0.5, 1))
        harness.round_parameters(model)
        return model

    def arguments(self):
        s = self.spec
        return ["--cell", s.cell, "--hidden", s.hidden, "--layers", s.layers,
                *["--bidirectional"] * s.bidirectional, *["--embed", s.embed] * bool(s.vocab),
                "--optimizer", "sgd", "--lr", TINY, "--momentum", TINY, "--epochs", 1,
                "--batch", self.batch, *self.more, "--shuffle", "none", "--log-every", 1,
                "--save-every", 1, "--keep", 0, "--progress", "none"]


def wanted(run):
    """Of each case the loss, how many strings fit, and the gradient by parameter."""
    out = []
    for i in range(CASES):
        ref.zero_grads(run.model)
        ids = range(i * run.batch, (i + 1) * run.batch)
        loss, count, _, _, _ = ref.pass_loss(run.model, run.data,
                                             ref.whole(run.spec, run.data, ids))
        if count:
            (loss / count).backward()
        out.append((float(loss.detach()) / max(1, count), count,
                    {name: p.grad.numpy().copy()
                     for name, p in run.model.named_parameters()}))
    return out


def single(run, i, count):
    """The gradient of a case by parameter, as PyTorch's float32 sums it, a sequence at a time."""
    model = copy.deepcopy(run.model).float()
    ref.zero_grads(model)
    for piece in ref.whole(run.spec, run.data, range(i * run.batch, (i + 1) * run.batch)):
        loss, fits, _, _, _ = ref.pass_loss(model, run.data, [piece])
        if fits:
            (loss / count).backward()
    return {name: p.grad.numpy() for name, p in model.named_parameters()}


def off_norm(got, want):
    norm = np.linalg.norm(want)
    return np.linalg.norm(got - want) / norm if norm else np.abs(got).max()


def compare(run, folder, i, record, want):
    """Case i: the largest error of a tensor of its gradient, and whether terms cancel."""
    loss, count, grads = want
    assert record["targets"] == count, f"{record['targets']} targets, not {count}"
    if count == 0:
        return 0.0, False
    near("loss", record["loss"], loss, LOSS_BOUND)
    worst, cancels = 0.0, False
    with h5py.File(os.path.join(folder, f"ckpt-{i + 1:010d}.h5")) as f:
        for name, grad in grads.items():
            got = f["optimizer/momentum_buffer/" + name][...].astype(np.float64)
            error = off_norm(got, grad)
            if error > GRADIENT_BOUND:
                theirs = off_norm(single(run, i, count)[name], grad)
                assert error <= CANCELS * theirs, (
                    f"the gradient of {name} is off by {error:.3g} of its norm "
                    f"{np.linalg.norm(grad):.3g}, PyTorch's float32 by {theirs:.3g}")
                cancels = True
            else:
                worst = max(worst, error)
    return worst, cancels


def solve(run, folder, device, faults):
    """Adds what is off to faults; the largest error of a gradient, and the number of cases with
    terms that cancel."""
    data_path, worst = os.path.join(folder, "data.h5"), 0.0
    init = os.path.join(folder, "init.safetensors")
    harness.write_data(data_path, run.data, run.data.inputs, run.rng)
    harness.write_parameters(init, run.model)
    want, off, cancel = wanted(run), {}, set()
    exact = ["--device", device, "--precision", "fp32", "--threads", 1]
    for ranks in (1, 2, 3):
        out = os.path.join(folder, f"np{ranks}")
        harness.run(ranks, "train", "--data", data_path, "--init", init, "--run-dir", out,
                    *run.arguments(), *exact)
        records = harness.records(out, "train")
        assert len(records) == CASES, f"{len(records)} updates"
        for i, record in enumerate(records):
            try:
                error, cancels = compare(run, out, i, record, want[i])
                worst = max(worst, error)
                cancel |= {i} if cancels else set()
            except AssertionError as fault:
                off[i] = f"{ranks} ranks, update {i + 1}: {fault}"
    faults += off.values()
    got = json.loads(harness.run(1, "eval", out, "--data", data_path, "--json", *exact))
    for key, value in ref.evaluate(run.model, run.data).items():
        near(f"eval: {key}", got[key], value, LOSS_BOUND)
    return worst, len(cancel)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--random", type=int, default=CASES, help="cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    harness.require_program()
    failed, worst, cancel, runs = 0, 0.0, 0, -(-args.random // CASES)
    for seed in range(args.seed, args.seed + runs):
        run, faults = Run(seed), []
        with tempfile.TemporaryDirectory() as folder:
            try:
                error, count = solve(run, folder, args.device, faults)
                worst, cancel = max(worst, error), cancel + count
            except AssertionError as fault:
                faults.append(fault)
        failed += len(faults)
        for fault in faults:
            print("FAIL", run.name, "\n    ", fault, flush=True)
    print(f"{failed} of {runs * CASES} cases differ; the largest error of a gradient is "
          f"{worst:.2g} of its norm; in {cancel} cases terms cancel")
    return 1 if failed or runs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
