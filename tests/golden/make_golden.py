#!/usr/bin/env python3
"""Writes golden.h5: what PyTorch float64 says about small models on ragged data; with
--weights weights.h5, the same of losses with weights of classes and label smoothing; with
--layers layers.h5, the same of layers that are not the default; with --sparse sparse.h5,
the same with updates of only the rows of the embedding that are used.

Usage: make_golden.py [--weights | --layers | --sparse] [OUT]. Needs PyTorch, NumPy and h5py.
The numbers are seeded: the same versions write the same tables. tests/unit/test_golden.c
holds the library against them.

The file is a set of tables, so that near 190 cases cost little more than their numbers:
  /cases    [C]      names
  /spec     [C,K]    integers, columns SPEC below
  /real     [C,M]    numbers, columns REAL below
  /param /grad /after /target /score /h /c   all cases one after another; SPEC says from where
  /data/NAME/offsets, /data/NAME/inputs      data sets that cases share
Parameters are stored flat in the order of PyTorch's state_dict (a tied matrix once) and are
float32 values; /grad is the gradient of the loss *sum*, /after the parameters after
`updates` updates, /score the scores of predict (the first 1000 of a case), /h and /c the
final states [L*D,N,H]. weights.h5 has two tables more:
  /weight   [C,O]    of each class, 1 where there are no weights
  /weighing [C,W]    numbers, columns WEIGHING: what nn.CrossEntropyLoss or
                     nn.BCEWithLogitsLoss gives as the mean, and the loss sum without weights
layers.h5 has one table more:
  /layers   [C,K]    integers, columns LAYERS below
"""
import os
import sys
import zlib

import h5py
import numpy as np
import torch

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import reference as ref  # noqa: E402

SPEC = ("data", "task", "cell", "layers", "bidirectional", "pool", "inputs", "vocab", "embed",
        "hidden", "outputs", "tie", "optimizer", "updates", "batch", "tbptt", "windows",
        "stream", "param", "params", "target", "score", "h", "c")
REAL = ("lr", "momentum", "beta1", "beta2", "eps", "weight_decay", "clip_norm", "loss",
        "targets")
WEIGHING = ("smoothing", "mean", "plain")
LAYERS = ("no_bias",)
TABLES = ("param", "grad", "after", "target", "score", "h", "c")
OPTIMIZERS = ("sgd", "adam", "adamw")

LENGTHS = {
    "ragged": [12, 32, 4, 52, 8, 64, 20, 36],
    "holes": [3, 0, 2, 5, 0, 2, 1],
    "empty": [0, 0, 0],
    "single": [7],
    "text": [9, 1, 0, 14, 2, 6, 9],
    "long65535": [65535],
    "long65536": [65536],
    "long100000": [100000],
}
INPUTS, OUTPUTS, HIDDEN, VOCAB, EMBED = 3, 4, 5, 11, 6
MOST_SCORES = 1000      # of a case that are stored, from the first

# Taken in turn. Clipping bites in most cases; eps of the third is large, so that an element
# whose gradient is near zero counts, and that of the others the default.
RULES = (
    dict(optimizer="sgd", lr=0.1, momentum=0.9, weight_decay=0.01, clip_norm=0.1),
    dict(optimizer="adam", lr=0.01, weight_decay=0.02, clip_norm=0.5),
    dict(optimizer="adamw", lr=0.01, weight_decay=0.1, eps=1e-3),
    dict(optimizer="sgd", lr=0.2),
    dict(optimizer="adamw", lr=0.02, beta1=0.8, beta2=0.99, clip_norm=0.2),
)


def generator(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def is_long(name):
    return name.startswith("long")


def data_inputs(name):
    """Those of long sequences repeat themselves, so that they pack well."""
    rng = generator("data", name)
    steps = sum(LENGTHS[name])
    if is_long(name):
        block = rng.standard_normal((1000, INPUTS)).astype(np.float32)
        return np.resize(block, (steps, INPUTS))
    if name == "text":
        return rng.integers(0, VOCAB, steps).astype(np.int32)
    return rng.standard_normal((steps, INPUTS)).astype(np.float32)


def make_targets(task, name, unlabelled):
    """Every seventh label is ignored, and every fifth row of values holds a NaN."""
    if task == "lm":
        return None
    rng = generator("targets", task, name)
    stepwise = task not in ref.PER_SEQUENCE
    n = sum(LENGTHS[name]) if stepwise else len(LENGTHS[name])
    if task in ("classify", "tag"):
        labels = rng.integers(0, OUTPUTS, n)
        if is_long(name):
            labels = np.resize(labels[:700], n)
        labels[3::7] = -1
        return np.full(n, -1) if unlabelled else labels
    if task == "multilabel":
        values = rng.integers(0, 2, (n, OUTPUTS)).astype(np.float32)
    else:
        values = rng.standard_normal((n, OUTPUTS)).astype(np.float32)
    values[2::5, 1] = np.nan
    return values


def make_model(spec, key):
    """Initial values of PyTorch's kind, rounded to float32."""
    rng = generator("model", key)
    model = ref.Model(spec)
    bound = {"embed": None, "rnn": spec.hidden ** -0.5, "head": spec.hidden ** -0.5}
    with torch.no_grad():
        for name, p in model.named_parameters():
            scale = bound[name.split(".")[0]]
            shape = tuple(p.shape)
            value = rng.standard_normal(shape) if scale is None else \
                rng.uniform(-scale, scale, shape)
            p.copy_(torch.from_numpy(value.astype(np.float32)))
    return model


def flat(tensors):
    return np.concatenate([t.detach().numpy().ravel() for t in tensors])


def cases():
    """(data, spec, options, unlabelled) of every case."""
    rules = 0

    def case(data, task, cell, layers=1, bi=False, updates=3, unlabelled=False, windows=None,
             **more):
        nonlocal rules
        text = data == "text"
        spec = ref.Spec(task=task, cell=cell, layers=layers, bidirectional=bi, hidden=HIDDEN,
                        inputs=0 if text else INPUTS, vocab=VOCAB if text else 0,
                        embed=EMBED if text else 0, outputs=VOCAB if task == "lm" else OUTPUTS)
        for key, value in more.items():
            setattr(spec, key, value)
        rule = dict(RULES[rules % len(RULES)])
        rules += 1
        if windows is not None:
            rule.update(windows)
        rule.setdefault("batch", len(LENGTHS[data]))
        return data, spec, ref.Options(max_updates=updates, epochs=1000, **rule), unlabelled

    everything = [(cell, layers, bi) for cell in ref.CELLS for layers in (1, 2, 3)
                  for bi in (False, True)]
    for cell, layers, bi in everything:
        yield case("ragged", "tag", cell, layers, bi)
        yield case("holes", "classify", cell, layers, bi)
        if layers == 1:
            yield case("ragged", "classify", cell, layers, bi, pool="mean")
            yield case("holes", "regress", cell, layers, bi, pool="max")
            yield case("single", "tag", cell, layers, bi)
            yield case("holes", "multilabel", cell, layers, bi)
        if layers == 2:
            yield case("ragged", "classify", cell, layers, bi, pool="max")
            yield case("holes", "regress", cell, layers, bi, pool="mean")
            yield case("holes", "regress_steps", cell, layers, bi)
            yield case("text", "tag", cell, layers, bi)
        if not bi:
            yield case("text", "lm", cell, layers)
    for cell in ref.CELLS:
        yield case("text", "lm", cell, 2, tie_weights=True, embed=HIDDEN)
        yield case("holes", "tag", cell, hidden=20)
        yield case("holes", "tag", cell, unlabelled=True)
        for bi in (False, True):
            yield case("empty", "classify", cell, 1, bi)
            yield case("empty", "tag", cell, 1, bi)
    for data in filter(is_long, LENGTHS):
        for cell in ("lstm", "gru"):
            yield case(data, "tag", cell, hidden=8, updates=1)
    for cell in ref.CELLS:
        for windows in (dict(tbptt=5, windows=1, batch=3), dict(tbptt=7, windows=3, batch=8),
                        dict(tbptt=16, windows=0, batch=5)):
            yield case("ragged", "tag", cell, 2, updates=6, windows=windows)
        yield case("ragged", "multilabel", cell, 1, updates=6,
                   windows=dict(tbptt=10, windows=2, batch=4))
        yield case("text", "lm", cell, 2, updates=6, windows=dict(tbptt=4, windows=2, batch=4))
        yield case("text", "lm", cell, 2, updates=6,
                   windows=dict(tbptt=3, windows=1, batch=5, stream=True))
        yield case("text", "lm", cell, 1, updates=6,
                   windows=dict(tbptt=4, windows=2, batch=3, stream=True))


def weighted_cases():
    """The same for weights.h5; weights are exact in float32."""
    weight = [0.25, 3.0, 0.0, 1.5]
    losses = (dict(class_weight=weight), dict(label_smoothing=0.125),
              dict(class_weight=weight, label_smoothing=0.5))

    def case(data, task, loss, cell="lstm", rule=0, **windows):
        text = data == "text"
        spec = ref.Spec(task=task, cell=cell, hidden=HIDDEN, inputs=0 if text else INPUTS,
                        vocab=VOCAB if text else 0, embed=EMBED if text else 0,
                        outputs=VOCAB if task == "lm" else OUTPUTS)
        o = ref.Options(max_updates=3, epochs=1000, **RULES[rule], **loss,
                        **(windows or dict(batch=len(LENGTHS[data]))))
        return data, spec, o, False

    for rule, loss in enumerate(losses):
        yield case("ragged", "classify", loss, rule=rule)
        yield case("holes", "tag", loss, "gru", rule)
        yield case("ragged", "tag", loss, rule=rule, tbptt=5, windows=2, batch=3)
    yield case("holes", "multilabel", losses[0], "gru")
    yield case("ragged", "multilabel", losses[0], rule=1)
    yield case("text", "lm", losses[1])
    yield case("text", "lm", losses[1], tbptt=4, windows=2, batch=3, stream=True)


def layer_cases():
    """The same for layers.h5."""
    rules = 0

    def case(data, task, cell, layers, bi, windows=None, **more):
        nonlocal rules
        text = data == "text"
        spec = ref.Spec(task=task, cell=cell, layers=layers, bidirectional=bi,
                        inputs=0 if text else INPUTS, vocab=VOCAB if text else 0,
                        embed=EMBED if text else 0, hidden=HIDDEN,
                        outputs=VOCAB if task == "lm" else OUTPUTS, **more)
        rule = dict(RULES[rules % len(RULES)])
        rules += 1
        rule.update(windows or dict(batch=len(LENGTHS[data])))
        return data, spec, ref.Options(max_updates=3, epochs=1000, **rule), False

    for cell in ref.CELLS:
        for bi in (False, True):
            yield case("ragged", "tag", cell, 2, bi, no_bias=True)
            yield case("holes", "classify", cell, 1, bi, no_bias=True)
        yield case("text", "lm", cell, 2, False, dict(tbptt=4, windows=2, batch=4, eps=1e-3),
                   no_bias=True)


def sparse_cases():
    """The same for sparse.h5: updates that leave rows of the embedding out. eps of the first
    is large, since Adam and SparseAdam add it in different places."""
    rules = (dict(optimizer="adam", lr=0.01, eps=1e-3, clip_norm=0.2),
             dict(optimizer="adamw", lr=0.02, beta1=0.8, beta2=0.99),
             dict(optimizer="sgd", lr=0.2, momentum=0.9, clip_norm=0.1),
             dict(optimizer="sgd", lr=0.2))
    for rule, cell in zip(rules, ("lstm", "gru", "rnn_tanh", "lstm")):
        for task, more in (("tag", dict(batch=1)), ("lm", dict(batch=2)),
                           ("lm", dict(tbptt=2, windows=1, batch=2, stream=True)),
                           ("lm", dict(tbptt=2, windows=2, batch=3))):
            spec = ref.Spec(task=task, cell=cell, hidden=HIDDEN, vocab=VOCAB, embed=EMBED,
                            outputs=VOCAB if task == "lm" else OUTPUTS)
            yield "text", spec, ref.Options(max_updates=7, epochs=1000, sparse_embedding=True,
                                            **rule, **more), False


def case_name(data, spec, o, unlabelled):
    words = [spec.cell, str(spec.layers), "bi" if spec.bidirectional else "uni", spec.task,
             data]
    if spec.task in ref.PER_SEQUENCE:
        words.append(spec.pool)
    if spec.tie_weights:
        words.append("tied")
    if spec.hidden != HIDDEN:
        words.append(f"hidden{spec.hidden}")
    if spec.no_bias:
        words.append("no-bias")
    if unlabelled:
        words.append("unlabelled")
    if o.class_weight:
        words.append("weights")
    if o.label_smoothing:
        words.append(f"smoothing{o.label_smoothing}")
    if o.sparse_embedding:
        words.append(f"{o.optimizer}{o.momentum or ''}-sparse-b{o.batch}")
    if o.tbptt:
        words.append(f"tbptt{o.tbptt}x{o.windows}{'-stream' if o.stream else ''}-b{o.batch}")
    return " ".join(words)


def torch_mean(model, data, o):
    """The mean loss of all targets as PyTorch's own modules give it."""
    scores, _, _ = ref.predict(model, data)
    weight = torch.tensor(o.class_weight or [1.0] * model.spec.outputs, dtype=torch.float64)
    if model.spec.task == "lm":
        ends = set(data.offsets[1:] - 1)
        rows = [i for i in range(len(data.inputs)) if i not in ends]
        scores, targets = scores[rows], data.inputs[[i + 1 for i in rows]]
    else:
        targets = data.targets
    scores, targets = torch.as_tensor(scores), torch.as_tensor(targets)
    if model.spec.task == "multilabel":
        rows = ~torch.isnan(targets).any(1)
        loss = torch.nn.BCEWithLogitsLoss(pos_weight=weight, reduction="none")
        return float(loss(scores[rows], targets[rows].double()).sum(1).mean())
    loss = torch.nn.CrossEntropyLoss(weight, ignore_index=-1,
                                     label_smoothing=o.label_smoothing)
    return float(loss(scores, targets.long()))


def solve(name, data, spec, o):
    """All numbers of one case."""
    model = make_model(spec, name)
    out = {"param": flat(model.parameters()).astype(np.float32)}
    ref.zero_grads(model)
    pieces = ref.whole(spec, data, range(len(data.lengths)))
    loss, count, *_ = ref.pass_loss(model, data, pieces, o=o)
    if count:
        loss.backward()
    out["loss"], out["targets"] = float(loss.detach()), count
    out["grad"] = flat(p.grad for p in model.parameters())
    if o.class_weight or o.label_smoothing:
        plain, *_ = ref.pass_loss(model, data, pieces)
        out["weighing"] = [o.label_smoothing, torch_mean(model, data, o),
                           float(plain.detach())]
        weight = o.class_weight or [1.0] * spec.outputs
        out["weight"] = weight + [1.0] * (VOCAB - len(weight))
    if spec.no_bias:
        out["layers"] = [spec.no_bias]
    scores, h, c = ref.predict(model, data)
    out["score"] = scores.ravel()[:MOST_SCORES]
    out["h"] = h.transpose(1, 0, 2).ravel()
    out["c"] = c.transpose(1, 0, 2).ravel() if spec.cell == "lstm" else np.zeros(0)
    out["target"] = np.zeros(0) if data.targets is None else data.targets.ravel()
    ref.train(model, data, o)
    out["after"] = flat(model.parameters())
    return out


def main(path, listed):
    torch.set_num_threads(1)
    names = list(LENGTHS)
    tables = {t: [] for t in TABLES}
    start = dict.fromkeys(TABLES, 0)
    titles, spec_rows, real_rows = [], [], []
    more = {"weight": [], "weighing": [], "layers": []}
    for data_name, spec, o, unlabelled in listed:
        name = case_name(data_name, spec, o, unlabelled)
        data = ref.Data(spec.task, LENGTHS[data_name], data_inputs(data_name),
                        make_targets(spec.task, data_name, unlabelled), spec.outputs)
        out = solve(name, data, spec, o)
        titles.append(name)
        spec_rows.append([
            names.index(data_name), ref.TASKS.index(spec.task), ref.CELLS.index(spec.cell),
            spec.layers, spec.bidirectional, ref.POOLS.index(spec.pool), spec.inputs,
            spec.vocab, spec.embed, spec.hidden, spec.outputs, spec.tie_weights,
            OPTIMIZERS.index(o.optimizer), o.max_updates, o.batch, o.tbptt, o.windows,
            o.stream, start["param"], len(out["param"]), start["target"], start["score"],
            start["h"], start["c"]])
        real_rows.append([o.lr, o.momentum, o.beta1, o.beta2, o.eps, o.weight_decay,
                          o.clip_norm, out["loss"], out["targets"]])
        for t, rows in more.items():
            rows += [out[t]] if t in out else []
        for t in TABLES:
            tables[t].append(out[t])
            start[t] += len(out[t])
    assert len(set(titles)) == len(titles)
    write(path, names, titles, spec_rows, real_rows, tables)
    with h5py.File(path, "a", libver=("v108", "v110")) as f:
        for t, rows in more.items():
            if rows:
                f[t] = np.array(rows, dtype=np.int32 if t == "layers" else np.float64)


def write(path, names, titles, spec_rows, real_rows, tables):
    with h5py.File(path, "w", libver=("v108", "v110")) as f:
        f.attrs["format"] = "rnn_dist-golden"
        f.attrs["torch"] = torch.__version__.split("+")[0]
        f["cases"] = np.array([t.encode() for t in titles])
        f["spec"] = np.array(spec_rows, dtype=np.int32)
        f["real"] = np.array(real_rows, dtype=np.float64)
        for t, parts in tables.items():
            kind = np.float32 if t in ("param", "target") else np.float64
            values = np.concatenate(parts).astype(kind)
            packing = {"compression": "gzip", "chunks": (min(65536, len(values)),)} \
                if t == "target" else {}
            f.create_dataset(t, data=values, **packing)
        for name in names:
            f[f"data/{name}/offsets"] = np.concatenate([[0], np.cumsum(LENGTHS[name])])
            inputs = data_inputs(name)
            packing = {"compression": "gzip", "chunks": inputs.shape} if is_long(name) else {}
            f.create_dataset(f"data/{name}/inputs", data=inputs, **packing)
    print(f"{path}: {len(titles)} cases, {os.path.getsize(path)} bytes")


FILES = {
    "--weights": ("weights.h5", weighted_cases),
    "--layers": ("layers.h5", layer_cases),
    "--sparse": ("sparse.h5", sparse_cases),
}

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    arguments = sys.argv[1:]
    file, listed = "golden.h5", cases
    if arguments and arguments[0] in FILES:
        file, listed = FILES[arguments.pop(0)]
    main((arguments or [os.path.join(here, file)])[0], listed())
