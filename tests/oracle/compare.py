#!/usr/bin/env python3
"""The whole program against PyTorch float64, through its command line.

Usage: compare.py [--only WORD] [--random N] [--seed N] [--keep DIR]
Environment: RNN_DIST is the program.

Each case writes a data set and initial parameters, trains on 1, 2 and 3 ranks in file order,
and compares with reference.py: every train record, the parameters after the updates, eval,
predictions and final states. PyTorch has to agree to 2e-4 (max error over max value), ranks
among each other to 2e-5. Exit 77 where PyTorch or the program is missing.
"""
import argparse
import os
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
import reference as ref  # noqa: E402
from harness import np, torch, h5py, near  # noqa: E402

TORCH_BOUND = 2e-4
RANKS_BOUND = 2e-5
LOSS_BOUND = 1e-5


class Case:
    """A model, a data set and options, made from a name and a seed."""

    def __init__(self, name, lengths, spec, options, more=(), seed=1, ranks=(1, 2, 3),
                 unlabelled=(), normalize=False):
        self.name, self.ranks, self.more = name, ranks, list(more)
        self.rng = np.random.default_rng(seed)
        self.spec, self.options = spec, options
        self.data = self.make_data(lengths, set(unlabelled))
        self.raw = self.data.inputs
        self.moments = None
        if normalize:
            self.normalize()
        torch.manual_seed(seed)
        self.model = ref.Model(spec)
        if spec.tie_weights:
            torch.nn.init.uniform_(self.model.head.weight, -spec.hidden ** -0.5,
                                   spec.hidden ** -0.5)
        harness.round_parameters(self.model)

    def make_data(self, lengths, unlabelled):
        spec, rng, steps = self.spec, self.rng, sum(lengths)
        if spec.vocab:
            inputs = rng.integers(0, spec.vocab, steps)
        else:
            inputs = rng.standard_normal((steps, spec.inputs)).astype(np.float32)
        data = ref.Data(spec.task, lengths, inputs, None, spec.outputs)
        data.vocab = spec.vocab
        if spec.task == "lm":
            return data
        if spec.task == "ctc":
            data.strings = harness.random_strings(rng, lengths, spec.outputs - 1)
            return data
        rows = steps if spec.stepwise else len(lengths)
        if spec.task in ("classify", "tag"):
            targets = rng.integers(0, spec.outputs, rows)
            targets[rng.random(rows) < 0.15] = -1
            targets[-1:] = 0
        else:
            shape = (rows, spec.outputs)
            targets = (rng.integers(0, 2, shape) if spec.task == "multilabel"
                       else rng.standard_normal(shape)).astype(np.float32)
            targets[rng.random(rows) < 0.1, 0] = np.nan
            targets[-1:] = 1
        for i in unlabelled:
            rows = slice(data.offsets[i], data.offsets[i + 1]) if spec.stepwise else i
            targets[rows] = -1 if spec.task in ("classify", "tag") else np.nan
        data.targets = targets
        return data

    def normalize(self):
        """What the model sees: the file holds features of odd scales, one of them constant."""
        rng, wide = self.rng, self.raw.shape[1]
        self.raw = (self.raw * rng.uniform(0.1, 30, wide) + rng.uniform(-9, 9, wide))
        self.raw[:, -1] = 2.5
        self.raw = self.raw.astype(np.float32)
        x = self.raw.astype(np.float64)
        mean, std = x.mean(0), x.std(0)
        std[-1] = 1
        self.moments = {"input.mean": mean, "input.std": std}
        self.data.inputs = (x - mean) / std
        self.more.append("--normalize")

    def arguments(self):
        s, o = self.spec, self.options
        out = ["--cell", s.cell, "--hidden", s.hidden, "--layers", s.layers,
               "--optimizer", o.optimizer, "--lr", repr(o.lr),
               "--weight-decay", o.weight_decay, "--clip-norm", o.clip_norm,
               "--lr-schedule", o.lr_schedule, "--lr-step", o.lr_step, "--lr-decay", o.lr_decay,
               "--warmup", o.warmup, "--epochs", o.epochs, "--max-updates", o.max_updates]
        out += ["--momentum", o.momentum] if o.optimizer == "sgd" else ["--eps", o.eps]
        out += [] if s.stepwise else ["--pool", s.pool]
        out += ["--bidirectional"] if s.bidirectional else []
        out += ["--no-bias"] if s.no_bias else []
        out += ["--embed", s.embed] if s.vocab else []
        out += ["--tie-weights"] if s.tie_weights else []
        if o.batch_tokens:
            out += ["--batch-tokens", o.batch_tokens]
        else:
            out += ["--batch", o.batch]
        if o.class_weight:
            out += ["--class-weight", ",".join(map(repr, o.class_weight))]
        if o.label_smoothing:
            out += ["--label-smoothing", o.label_smoothing]
        if o.tbptt:
            out += ["--tbptt", o.tbptt, "--windows", o.windows]
            if s.task == "lm":
                out += ["--stream", "yes" if o.stream else "no"]
        return out + self.more + ["--shuffle", "none", "--log-every", 1, "--seed", 7,
                                  "--progress", "none", "--precision", "fp32", "--threads", 1]


def check_records(got, want):
    """One train record an update: of a skipped one it counts nothing."""
    updates = [r["update"] for r in got]
    assert updates == [r["update"] for r in want], f"train records of updates {updates}"
    for a, b in zip(got, want):
        where = f"update {b['update']}"
        assert a["epoch"] == b["epoch"], f"{where}: epoch {a['epoch']}, not {b['epoch']}"
        assert a["targets"] == b["targets"], f"{where}: {a['targets']} targets"
        near(f"{where}: loss", a["loss"], b["loss"], LOSS_BOUND)
        near(f"{where}: lr", a["lr"], b["lr"], 1e-9)
        near(f"{where}: grad_norm", a["grad_norm"], b["grad_norm"], TORCH_BOUND)


def check_parameters(model, folder, update, moments):
    path = os.path.join(folder, f"ckpt-{update:010d}.h5")
    got = harness.read_parameters(path)
    want = dict(model.named_parameters(remove_duplicate=False))
    assert set(want) <= set(got), f"{path}: {sorted(got)}"
    for name, p in want.items():
        near(f"{name} after {update} updates", got[name], p.detach().numpy(), TORCH_BOUND)
    for name, value in (moments or {}).items():
        near(name, got[name], value, 1e-6)
    return got


def check_prediction(case, model, folder, data_path, ranks):
    """predict in all its forms; the raw scores."""
    scores, h, c = ref.predict(model, case.data)
    out = os.path.join(folder, "predicted.h5")
    harness.run(ranks, "predict", folder, "--data", data_path, "--out", out, "--raw",
                "--states", "--threads", 1)
    with h5py.File(out, "r") as f:
        assert (f["offsets"][...] == case.data.offsets).all(), "offsets of predictions"
        raw = f["outputs"][...]
        near("raw scores", raw, scores, TORCH_BOUND)
        near("h_n", f["states/h"][...], h, TORCH_BOUND)
        assert ("states/c" in f) == (case.spec.cell == "lstm"), "states/c"
        if case.spec.cell == "lstm":
            near("c_n", f["states/c"][...], c, TORCH_BOUND)
    os.unlink(out)
    harness.run(ranks, "predict", folder, "--data", data_path, "--out", out, "--threads", 1)
    with h5py.File(out, "r") as f:
        near("predictions", f["outputs"][...], ref.activated(case.spec, scores), TORCH_BOUND)
    if case.spec.stepwise:
        check_padded(case, scores, folder, data_path, ranks)
    return raw


def check_padded(case, scores, folder, data_path, ranks):
    out = os.path.join(folder, "padded.h5")
    longest = max(case.data.lengths)
    values = ref.activated(case.spec, scores)
    want = np.zeros((len(case.data.lengths), longest + 2, case.spec.outputs))
    for i, n in enumerate(case.data.lengths):
        want[i, :n] = values[case.data.offsets[i]:case.data.offsets[i + 1]]
    harness.run(ranks, "predict", folder, "--data", data_path, "--out", out, "--pad",
                longest + 2)
    with h5py.File(out, "r") as f:
        near("padded predictions", f["outputs"][...], want, TORCH_BOUND)


def check_evaluation(case, model, folder, data_path, ranks):
    import json
    want = ref.evaluate(model, case.data, case.options)
    got = json.loads(harness.run(ranks, "eval", folder, "--data", data_path, "--json"))
    for key, value in want.items():
        assert key in got, f"eval: no {key} in {got}"
        near(f"eval: {key}", got[key], value, TORCH_BOUND)


def solve(case, folder):
    """Runs a case on each number of ranks; raises AssertionError where something is off."""
    data_path = os.path.join(folder, "data.h5")
    init = os.path.join(folder, "init" + case.rng.choice([".safetensors", ".h5"]))
    harness.write_data(data_path, case.data, case.raw, case.rng)
    harness.write_parameters(init, case.model)
    want = ref.train(case.model, case.data, case.options)
    first = None
    for ranks in case.ranks:
        run_dir = os.path.join(folder, f"np{ranks}")
        harness.run(ranks, "train", "--data", data_path, "--init", init, "--run-dir", run_dir,
                    *case.arguments())
        check_records(harness.records(run_dir, "train"), want)
        skipped = [r["update"] for r in harness.records(run_dir, "skip")]
        assert skipped == [r["update"] for r in want if r["skip"]], f"skipped {skipped}"
        got = check_parameters(case.model, run_dir, len(want), case.moments)
        got["predictions"] = check_prediction(case, case.model, run_dir, data_path, ranks)
        check_evaluation(case, case.model, run_dir, data_path, ranks)
        if first is None:
            first = got
        for name, value in got.items():
            near(f"{name} of {ranks} ranks against {case.ranks[0]}", value, first[name],
                 RANKS_BOUND)


RAGGED = [12, 3, 7, 1, 25, 4, 9, 16, 2, 5, 11]
HOLES = [3, 0, 2, 0, 6, 1, 0]


def fixed_cases():
    """What must be there in every draw."""
    spec, opt = ref.Spec, ref.Options
    for i, cell in enumerate(ref.CELLS):
        yield Case(f"{cell}, ctc", RAGGED + HOLES,
                   spec("ctc", cell, 2, True, hidden=8, inputs=3, outputs=5),
                   opt(batch=5, max_updates=6, lr=0.01, eps=1e-4),
                   more=["--microbatch-tokens", 20] * (i % 2))
        yield Case(f"{cell}, holes, classify", HOLES,
                   spec("classify", cell, 2, True, "last", 7, 3, outputs=3),
                   opt(batch=4, max_updates=3, lr=0.01), seed=i)
        yield Case(f"{cell}, three layers both ways, tag", RAGGED,
                   spec("tag", cell, 3, True, hidden=9, inputs=4, outputs=5),
                   opt(batch=5, max_updates=4, optimizer="sgd", lr=0.5, clip_norm=0.5), seed=i)
        yield Case(f"{cell}, no biases, tag", RAGGED + HOLES,
                   spec("tag", cell, 2, True, hidden=6, inputs=3, outputs=4, no_bias=True),
                   opt(batch=5, max_updates=4, lr=0.01, eps=1e-4), seed=i)
    yield Case("more ranks than sequences", [4, 9],
               spec("regress", "gru", 1, False, "mean", 6, 3, outputs=2),
               opt(batch=2, max_updates=3), ranks=(1, 3, 5))
    yield Case("one sequence", [8], spec("multilabel", "lstm", 2, True, hidden=6, inputs=2),
               opt(batch=1, max_updates=3, optimizer="adamw", weight_decay=0.1), ranks=(1, 2))
    yield Case("an entry of empty sequences only", [0, 0, 4, 2, 0, 3],
               spec("tag", "lstm", 1, hidden=5, inputs=3), opt(batch=2, max_updates=6))
    yield Case("entries without a label", RAGGED, spec("tag", "gru", 1, hidden=5, inputs=3),
               opt(batch=3, max_updates=8, optimizer="adamw", weight_decay=0.1),
               unlabelled=(0, 1, 2, 5, 9))
    yield Case("all sequences empty, classify", [0, 0, 0],
               spec("classify", "lstm", 1, True, "max", 5, 3, outputs=3),
               opt(batch=3, max_updates=3, optimizer="sgd", lr=0.1))
    yield Case("batch-tokens", RAGGED + [0, 3, 0], spec("tag", "lstm", 2, hidden=8, inputs=3),
               opt(batch_tokens=14, max_updates=9))
    yield Case("microbatch-tokens", RAGGED, spec("regress_steps", "gru", 2, True, hidden=8,
                                                 inputs=3, outputs=2),
               opt(batch=8, max_updates=4), more=["--microbatch-tokens", 10])
    yield Case("microbatch-tokens, classify", RAGGED + HOLES,
               spec("classify", "lstm", 2, True, "mean", 8, 3, outputs=3),
               opt(batch=9, max_updates=4), more=["--microbatch-tokens", 13])
    for windows in (0, 1, 3):
        yield Case(f"windows {windows} of 4 steps, tag", RAGGED + HOLES,
                   spec("tag", "lstm", 2, hidden=8, inputs=3),
                   opt(batch=5, tbptt=4, windows=windows, max_updates=6))
        yield Case(f"windows {windows} of 4 steps, lm", RAGGED + HOLES,
                   spec("lm", "gru", 2, hidden=8, vocab=13, embed=6, outputs=13),
                   opt(batch=5, tbptt=4, windows=windows, max_updates=6))
    yield Case("windows with micro-batches", RAGGED, spec("tag", "gru", 1, hidden=8, inputs=3),
               opt(batch=8, tbptt=5, windows=2, max_updates=6), more=["--microbatch-tokens", 9])
    for lanes, windows in ((7, 1), (4, 3), (1, 2)):
        yield Case(f"streaming lm, {lanes} lanes, {windows} windows", RAGGED + HOLES,
                   spec("lm", "lstm", 2, hidden=8, vocab=13, embed=6, outputs=13),
                   opt(batch=lanes, tbptt=3, windows=windows, stream=True, max_updates=6))
    yield Case("streaming lm, tied", RAGGED, spec("lm", "gru", 2, hidden=8, vocab=11, embed=8,
                                                  outputs=11, tie_weights=True),
               opt(batch=3, tbptt=5, stream=True, max_updates=8, optimizer="sgd", lr=0.3,
                   momentum=0.9))
    weights = [0.25, 3.0, 0.0, 1.5]
    for task in ("classify", "tag", "multilabel"):
        yield Case(f"class weights, {task}", RAGGED + HOLES, spec(task, "lstm", inputs=3),
                   opt(batch=5, max_updates=5, class_weight=weights, clip_norm=0.3),
                   more=["--microbatch-tokens", 20])
    yield Case("class weights and label smoothing", RAGGED, spec("tag", "gru", inputs=3),
               opt(batch=4, tbptt=6, windows=2, max_updates=5, class_weight=weights,
                   label_smoothing=0.1))
    yield Case("label smoothing, streaming lm", RAGGED,
               spec("lm", "lstm", hidden=8, vocab=13, embed=6, outputs=13),
               opt(batch=3, tbptt=5, stream=True, max_updates=6, label_smoothing=0.2))
    yield Case("updates without weight", RAGGED, spec("classify", "rnn_tanh", inputs=3),
               opt(batch=1, max_updates=9, class_weight=[1.0, 0.0, 0.0, 0.0]))
    yield Case("normalised", RAGGED + HOLES, spec("tag", "lstm", 2, hidden=8, inputs=4),
               opt(batch=4, max_updates=4), normalize=True)
    yield Case("cosine over updates with warm-up", RAGGED, spec(inputs=3, outputs=4),
               opt(batch=3, lr_schedule="cosine", warmup=3, max_updates=9))
    yield Case("cosine over epochs", RAGGED, spec(inputs=3, outputs=4),
               opt(batch=4, lr_schedule="cosine", epochs=3))
    yield Case("steps", RAGGED, spec(inputs=3, outputs=4),
               opt(batch=4, lr_schedule="step", lr_step=2, lr_decay=0.5, epochs=5))


def random_case(seed):
    """Anything that the options allow. Adam's step is g / (|g| + eps): with the default eps the
    smallest gradients of a float are noise that it makes as large as the others."""
    rng = np.random.default_rng([2024, seed])

    def pick(*values):
        return values[rng.integers(len(values))]

    task = pick(*ref.TASKS)
    tokens = task == "lm" or rng.random() < 0.2
    spec = ref.Spec(task, pick(*ref.CELLS), pick(1, 2, 3), False, pick(*ref.POOLS),
                    int(rng.integers(1, 40)), outputs=int(rng.integers(2, 8)),
                    no_bias=bool(rng.random() < 0.2))
    if tokens:
        spec.vocab = int(rng.integers(3, 30))
        spec.embed = int(rng.integers(1, 12))
        if task == "lm":
            spec.outputs = spec.vocab
            spec.tie_weights = bool(rng.random() < 0.3)
            spec.embed = spec.hidden if spec.tie_weights else spec.embed
    else:
        spec.inputs = int(rng.integers(1, 10))
    lengths = [int(n) for n in rng.integers(0, pick(4, 12, 40), rng.integers(1, 14))] + [5, 2]
    opt = ref.Options(batch=int(rng.integers(1, 9)), max_updates=int(rng.integers(1, 5)),
                      optimizer=pick("sgd", "adam", "adamw"), lr=pick(0.001, 0.01, 0.03),
                      eps=1e-4, momentum=pick(0.0, 0.9), weight_decay=pick(0.0, 0.01),
                      clip_norm=pick(0.0, 0.1, 1.0), warmup=pick(0, 0, 3))
    more = []
    if spec.stepwise and task != "ctc" and rng.random() < 0.35:
        opt.tbptt, opt.windows = int(rng.integers(1, 9)), int(rng.integers(0, 4))
        opt.stream = task == "lm" and rng.random() < 0.5
        if opt.stream:
            opt.windows = max(1, opt.windows)
            opt.batch = min(opt.batch, sum(lengths) - 1)
    elif task != "lm":
        spec.bidirectional = bool(rng.random() < 0.5)
    if not opt.stream and rng.random() < 0.25:
        opt.batch_tokens = int(rng.integers(1, 60))
    if task in ("classify", "tag", "multilabel") and rng.random() < 0.3:
        opt.class_weight = [float(w) for w in rng.integers(0, 9, spec.outputs) / 4 + 0.25]
    if task in ("classify", "tag", "lm") and rng.random() < 0.3:
        opt.label_smoothing = float(pick(0.1, 0.5))
    if rng.random() < 0.3:
        more = ["--microbatch-tokens", int(rng.integers(1, 40))]
    name = f"random {seed}: {spec.cell} {spec.layers} {task}"
    return Case(name, lengths, spec, opt, more, seed, ranks=(1, int(rng.integers(2, 6))),
                normalize=not tokens and sum(lengths) > 40 and rng.random() < 0.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="write the files of all cases here")
    args = parser.parse_args()
    harness.require_program()
    todo = list(fixed_cases()) + [random_case(args.seed + i) for i in range(args.random)]
    todo = [c for c in todo if args.only in c.name]
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for i, case in enumerate(todo):
            folder = os.path.join(args.keep or scratch, str(i))
            os.makedirs(folder)
            try:
                solve(case, folder)
                print("ok  ", case.name, flush=True)
            except AssertionError as fault:
                failed += 1
                print("FAIL", f"{i}:", case.name, "\n    ", fault, flush=True)
                print("    ", " ".join(map(str, case.arguments())), flush=True)
            except Exception:
                failed += 1
                print("FAIL", f"{i}:", case.name, flush=True)
                traceback.print_exc()
    print(f"{len(todo) - failed} of {len(todo)} cases agree")
    return 1 if failed or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
