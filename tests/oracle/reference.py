"""The model, the losses and the training loop of rnn_dist once more, in PyTorch float64.

An oracle: it is written from the data format and the arithmetic that rnn_dist-data(5) and
rnn_dist-train(1) describe, and shares no code with the library. Batches come in file order
(--shuffle none) and dropout is off, since PyTorch draws other numbers.
PyTorch refuses empty sequences when packing, so they are dropped before and put back after:
their final state is their initial one, they pool to zeros, and they have no steps.
"""
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

CELLS = ("rnn_tanh", "rnn_relu", "lstm", "gru")
TASKS = ("classify", "tag", "regress", "regress_steps", "multilabel", "lm", "ctc")
POOLS = ("last", "mean", "max")
PER_SEQUENCE = ("classify", "regress")


@dataclass
class Spec:
    """What a model is; the names are those of the options."""
    task: str = "classify"
    cell: str = "lstm"
    layers: int = 1
    bidirectional: bool = False
    pool: str = "last"
    hidden: int = 5
    inputs: int = 0          # width of the features, 0 = tokens
    vocab: int = 0
    embed: int = 0
    outputs: int = 4
    tie_weights: bool = False
    no_bias: bool = False

    @property
    def directions(self):
        return 2 if self.bidirectional else 1

    @property
    def stepwise(self):
        return self.task not in PER_SEQUENCE


@dataclass
class Data:
    """A data set: lengths of the sequences, their steps one after another, their targets."""
    task: str
    lengths: list
    inputs: np.ndarray                  # [S,I] float or [S] int
    targets: np.ndarray = None          # as the data format has them
    outputs: int = 0                    # classes, values or vocabulary; classes + 1 of ctc
    strings: list = None                # ctc: the labels of each sequence, from 0
    offsets: np.ndarray = field(init=False)

    def __post_init__(self):
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def tokens(self):
        return self.inputs.ndim == 1


class Model(nn.Module):
    """Embedding, recurrent layers and head, under the parameter names of PyTorch."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        self.used = set()       # tokens since zero_grads()
        width = spec.inputs
        if spec.vocab:
            self.embed = nn.Embedding(spec.vocab, spec.embed)
            width = spec.embed
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}.get(spec.cell, nn.RNN)
        extra = {"nonlinearity": spec.cell[4:]} if kind is nn.RNN else {}
        self.rnn = kind(width, spec.hidden, spec.layers, bidirectional=spec.bidirectional,
                        bias=not spec.no_bias, **extra)
        self.head = nn.Linear(spec.directions * spec.hidden, spec.outputs)
        if spec.tie_weights:
            self.head.weight = self.embed.weight
        self.double()

    @property
    def dtype(self):
        return self.head.weight.dtype

    def zero_state(self, n):
        """h and c [L*D, n, H] of n sequences; c is zero and unused where the cell has none."""
        spec = self.spec
        zero = torch.zeros(spec.layers * spec.directions, n, spec.hidden, dtype=self.dtype)
        return zero, zero.clone()

    def steps(self, xs, state=None):
        """Hidden states [length, D*H] of each sequence and its final state."""
        h0, c0 = self.zero_state(len(xs)) if state is None else state
        live = [i for i, x in enumerate(xs) if len(x)]
        width = self.spec.directions * self.spec.hidden
        ys = [torch.zeros(0, width, dtype=self.dtype) for _ in xs]
        if not live:
            return ys, (h0, c0)
        values = [xs[i] for i in live]
        if self.spec.vocab:
            self.used.update(int(token) for x in values for token in x)
        values = [self.embed(x) if self.spec.vocab else x.to(self.dtype) for x in values]
        padded, h, c = self._run(values, h0[:, live], c0[:, live])
        for j, i in enumerate(live):
            ys[i] = padded[:len(xs[i]), j]
        index = torch.tensor(live)
        return ys, (h0.index_copy(1, index, h), c0.index_copy(1, index, c))

    def _run(self, values, h, c):
        """Outputs [T,N,D*H] and final state of sequences with steps."""
        if len(values) == 1 and self.spec.directions == 1:
            return self._run_alone(values[0].unsqueeze(1), h, c)
        packed = pack_padded_sequence(pad_sequence(values), [len(v) for v in values],
                                      enforce_sorted=False)
        y, h, c = self._step(packed, h, c)
        return pad_packed_sequence(y)[0], h, c

    def _run_alone(self, x, h, c):
        """The same for one sequence [T,1,I], piece by piece: PyTorch's backward pass takes time
        like the square of the steps of a call."""
        ys = []
        for piece in x.split(1000):
            y, h, c = self._step(piece, h, c)
            ys.append(y)
        return torch.cat(ys), h, c

    def _step(self, x, h, c):
        if self.spec.cell == "lstm":
            y, (h, c) = self.rnn(x, (h, c))
        else:
            y, h = self.rnn(x, h)
        return y, h, c

    def pooled(self, ys):
        """One row a sequence."""
        return torch.stack([self._pool(y) for y in ys])

    def _pool(self, y):
        hidden = self.spec.hidden
        if len(y) == 0:
            return torch.zeros(y.shape[1], dtype=torch.float64)
        if self.spec.pool == "mean":
            return y.mean(0)
        if self.spec.pool == "max":
            first = np.argmax(y.detach().numpy(), axis=0)   # a tie goes to the earliest step
            return y[torch.from_numpy(first), torch.arange(y.shape[1])]
        return torch.cat([y[-1, :hidden], y[0, hidden:]])

    def scores(self, xs, state=None):
        """Scores of sequences (one tensor [N,O]) or of steps (a list of [length,O]), and the
        final state."""
        ys, state = self.steps(xs, state)
        if self.spec.stepwise:
            return [self.head(y) for y in ys], state
        return self.head(self.pooled(ys)), state


def loss_sum(spec, scores, targets, o):
    """Sum of the losses over targets, how many there are, how many are classified right, and
    what divides the sum: their number, or the sum of the weights of their classes. o: options
    of the training loss, None in evaluations."""
    weight = None if o is None or o.class_weight is None else \
        torch.tensor(o.class_weight, dtype=torch.float64)
    if spec.task in ("classify", "tag", "lm"):
        labels = torch.as_tensor(targets).long()
        live = labels >= 0
        count = int(live.sum())
        if count == 0:
            return scores.sum() * 0, 0, 0, 0
        loss = nn.functional.cross_entropy(scores[live], labels[live], weight, reduction="sum",
                                           label_smoothing=o.label_smoothing if o else 0)
        best = torch.from_numpy(np.argmax(scores.detach().numpy(), axis=1))
        return (loss, count, int((best[live] == labels[live]).sum()),
                count if weight is None else float(weight[labels[live]].sum()))
    values = torch.as_tensor(targets).double()
    live = ~torch.isnan(values).any(1)
    count = int(live.sum())
    if count == 0:
        return scores.sum() * 0, 0, 0, 0
    if spec.task == "multilabel":
        loss = nn.functional.binary_cross_entropy_with_logits(scores[live], values[live],
                                                              reduction="sum",
                                                              pos_weight=weight)
    else:
        loss = ((scores[live] - values[live]) ** 2).mean(1).sum()
    return loss, count, 0, count


def steps_needed(labels):
    """A step for each label, and one for the blank between two that are equal."""
    return len(labels) + sum(a == b for a, b in zip(labels, labels[1:]))


def distance(a, b):
    """The fewest labels to insert, remove or replace that make one string of the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        corner, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            corner, row[j + 1] = row[j + 1], min(corner + (x != y), row[j] + 1,
                                                 row[j + 1] + 1)
    return row[-1]


def best_path(scores):
    """The string of the best output of every step; output 0 is the blank."""
    path = scores.argmax(1).tolist()
    return [k - 1 for k, before in zip(path, [0] + path) if k not in (before, 0)]


def strings_loss(scores, strings):
    """Sum over the strings that fit of loss / labels, how many fit, edits of their best paths.
    One sequence at a time, since PyTorch pads; it refuses those without steps."""
    total, count, edits = sum(x.sum() for x in scores) * 0, 0, 0
    for x, labels in zip(scores, strings):
        if len(x) < steps_needed(labels):
            continue
        count += 1
        if len(x) == 0:
            continue
        edits += distance(best_path(x.detach()), labels)
        loss = nn.functional.ctc_loss(
            torch.log_softmax(x, 1)[:, None], torch.tensor([labels], dtype=torch.long) + 1,
            torch.tensor([len(x)]), torch.tensor([len(labels)]), reduction="none")[0]
        total = total + loss / max(1, len(labels))
    return total, count, edits, count


def sequence_inputs(data, first, count):
    part = data.inputs[first:first + count]
    return torch.as_tensor(part).long() if data.tokens else torch.as_tensor(part).double()


def sequence_length(spec, data, i):
    """Steps that training sees: of n tokens of a language model, n - 1."""
    return max(0, data.lengths[i] - 1) if spec.task == "lm" else data.lengths[i]


def pass_loss(model, data, pieces, state=None, o=None):
    """Loss of pieces (sequence or None, first step, steps): sum, targets, right, weight,
    state."""
    spec = model.spec
    scores, state = model.scores([sequence_inputs(data, b, n) for _, b, n in pieces], state)
    if spec.task == "ctc":
        return *strings_loss(scores, [data.strings[i] for i, _, _ in pieces]), state
    if spec.stepwise:
        scores = torch.cat(scores)
        if spec.task == "lm":
            rows = [data.inputs[b + 1:b + 1 + n] for _, b, n in pieces]
        else:
            rows = [data.targets[b:b + n] for _, b, n in pieces]
        targets = np.concatenate(rows)
    else:
        targets = data.targets[[i for i, _, _ in pieces]]
    return *loss_sum(spec, scores, targets, o), state


def whole(spec, data, ids):
    return [(i, int(data.offsets[i]), sequence_length(spec, data, i)) for i in ids]


@dataclass
class Options:
    batch: int = 32
    batch_tokens: int = 0
    tbptt: int = 0
    windows: int = 1
    stream: bool = False
    optimizer: str = "adam"
    lr: float = 0.001
    momentum: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    lr_schedule: str = "constant"
    lr_step: int = 1
    lr_decay: float = 0.1
    warmup: int = 0
    epochs: int = 10
    max_updates: int = 0
    class_weight: list = None
    label_smoothing: float = 0.0
    sparse_embedding: bool = False


def batches(data, o):
    """Sequences of each batch, in file order."""
    n = len(data.lengths)
    if not o.batch_tokens:
        return [list(range(a, min(n, a + o.batch))) for a in range(0, n, o.batch)]
    out, now, steps = [], [], 0
    for i in range(n):
        if now and steps + data.lengths[i] > o.batch_tokens:
            out.append(now)
            now, steps = [], 0
        now.append(i)
        steps += data.lengths[i]
    return out + [now] if now else out


def cut(pieces, first, k):
    """The steps first .. first+k-1 of each piece; a finished one has none."""
    return [(i, b + min(first, n), max(0, min(k, n - first))) for i, b, n in pieces]


def grouped(pieces, o):
    """Groups of windows; each group makes an update."""
    longest = max(n for _, _, n in pieces)
    if not o.tbptt:
        return [[pieces]]
    starts = list(range(0, longest, o.tbptt)) or [0]
    windows = [cut(pieces, s, o.tbptt) for s in starts]
    size = o.windows or len(windows)
    return [windows[a:a + size] for a in range(0, len(windows), size)]


def lanes(data, count):
    """The pieces of a streaming language model: lane i of the joined text."""
    pairs = int(data.offsets[-1]) - 1
    cuts = [i * pairs // count for i in range(count + 1)]
    return [(None, a, b - a) for a, b in zip(cuts, cuts[1:])]


def epoch_groups(spec, data, o):
    """One list a batch, of its groups of windows."""
    if o.stream:
        return [grouped(lanes(data, o.batch), o)]
    return [grouped(whole(spec, data, ids), o) for ids in batches(data, o)]


class SparseSGD:
    """SGD that updates only the rows of a sparse gradient, and their momentum. (That of
    torch.optim.SGD also moves the rows whose momentum is left from earlier updates.)"""

    def __init__(self, param, o):
        self.param, self.momentum = param, o.momentum
        self.buffer = torch.zeros_like(param)
        self.param_groups = [{"lr": o.lr}]

    @torch.no_grad()
    def step(self):
        grad = self.param.grad.coalesce()
        rows = grad.indices()[0]
        self.buffer[rows] = self.momentum * self.buffer[rows] + grad.values()
        self.param[rows] -= self.param_groups[0]["lr"] * self.buffer[rows]


class SparseEmbedding:
    """One optimizer for the embedding, whose gradient becomes sparse, and one for the rest."""

    def __init__(self, model, o):
        self.model = model
        weight = model.embed.weight
        sparse = SparseSGD(weight, o) if o.optimizer == "sgd" else \
            torch.optim.SparseAdam([weight], lr=o.lr, betas=(o.beta1, o.beta2), eps=o.eps)
        rest = [p for p in model.parameters() if p is not weight]
        self.parts = [sparse, dense_optimizer(rest, o)]
        self.param_groups = [g for part in self.parts for g in part.param_groups]

    def step(self):
        weight = self.model.embed.weight
        rows = torch.tensor(sorted(self.model.used), dtype=torch.long)
        weight.grad = torch.sparse_coo_tensor(rows[None], weight.grad[rows], weight.shape)
        for part in self.parts:
            part.step()


def make_optimizer(model, o):
    if o.sparse_embedding:
        return SparseEmbedding(model, o)
    return dense_optimizer(model.parameters(), o)


def dense_optimizer(params, o):
    if o.optimizer == "sgd":
        return torch.optim.SGD(params, lr=o.lr, momentum=o.momentum,
                               weight_decay=o.weight_decay)
    kind = torch.optim.Adam if o.optimizer == "adam" else torch.optim.AdamW
    return kind(params, lr=o.lr, betas=(o.beta1, o.beta2), eps=o.eps,
                weight_decay=o.weight_decay)


def learning_rate(o, update, epoch, share):
    """Rate of the update that follows `update` others, in epoch `epoch` (from 0), of which
    `share` is done."""
    lr = o.lr
    if o.lr_schedule == "step":
        lr *= o.lr_decay ** (epoch // o.lr_step)
    elif o.lr_schedule == "cosine":
        p = update / o.max_updates if o.max_updates else (epoch + share) / o.epochs
        lr *= (1 + math.cos(math.pi * p)) / 2
    if o.warmup:
        lr *= min(1, (update + 1) / o.warmup)
    return lr


def apply_update(model, optimizer, o, divisor, lr):
    """From gradient sums to new parameters; the norm before clipping."""
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    for g in grads:
        g /= divisor
    norm = float(torch.sqrt(sum((g ** 2).sum() for g in grads)))
    if o.clip_norm:
        factor = min(1.0, o.clip_norm / (norm + 1e-6))
        for g in grads:
            g *= factor
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    return norm


def zero_grads(model):
    model.used.clear()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)


def group_gradient(model, data, group, state, o):
    """Adds the gradient sum of a group of windows; loss, targets, their weight, carried
    state."""
    total, targets, weights = 0.0, 0, 0
    for pieces in group:
        loss, count, _, weight, state = pass_loss(model, data, pieces, state, o)
        state = tuple(s.detach() for s in state)
        if count:
            loss.backward()
        total += float(loss.detach())
        targets += count
        weights += weight
    return total, targets, weights, state


def train(model, data, o):
    """Trains as `rnn_dist train --shuffle none` does; one record an update."""
    optimizer = make_optimizer(model, o)
    records = []
    for epoch in range(o.epochs):
        plan = epoch_groups(model.spec, data, o)
        updates, done = sum(len(b) for b in plan), 0
        for batch in plan:
            state = None
            for group in batch:
                lr = learning_rate(o, len(records), epoch, done / updates)
                zero_grads(model)
                loss, count, weight, state = group_gradient(model, data, group, state, o)
                norm = apply_update(model, optimizer, o, weight, lr) if weight else 0.0
                records.append({"update": len(records) + 1, "epoch": epoch + 1,
                                "loss": loss / weight if weight else 0.0,
                                "targets": count if weight else 0,
                                "lr": lr, "grad_norm": norm, "skip": weight == 0})
                done += 1
                if len(records) == o.max_updates:
                    return records
    return records


def evaluate(model, data, o=None):
    """Loss, targets and the figure that the task reports."""
    spec = model.spec
    with torch.no_grad():
        if o is not None and o.stream:
            parts, state = [], None
            for pieces in grouped(lanes(data, o.batch), Options(tbptt=o.tbptt, windows=1)):
                *part, state = pass_loss(model, data, pieces[0], state)
                parts.append(part)
        else:
            parts = [pass_loss(model, data, [p])[:3]
                     for p in whole(spec, data, range(len(data.lengths)))]
    loss, count, right = (float(sum(p[k] for p in parts)) for k in range(3))
    mean = loss / count
    if spec.task == "ctc":
        labels = sum(len(s) for s, n in zip(data.strings, data.lengths) if steps_needed(s) <= n)
        return {"loss": mean, "targets": int(count), "label_error_rate": right / labels}
    figure = {"classify": ("accuracy", right / count), "tag": ("accuracy", right / count),
              "lm": ("perplexity", math.exp(mean)),
              "multilabel": ("nll", mean)}.get(spec.task, ("rmse", math.sqrt(mean)))
    return {"loss": mean, "targets": int(count), figure[0]: figure[1]}


def predict(model, data):
    """Scores [S,O] or [N,O], and final states [N, L*D, H], in the order of the data set."""
    with torch.no_grad():
        xs = [sequence_inputs(data, int(b), int(n))
              for b, n in zip(data.offsets, data.lengths)]
        scores, (h, c) = model.scores(xs)
        if model.spec.stepwise:
            scores = torch.cat(scores)
    return scores.numpy(), h.transpose(0, 1).numpy(), c.transpose(0, 1).numpy()


def activated(spec, scores):
    """What predict writes without --raw."""
    scores = torch.as_tensor(scores)
    if spec.task in ("classify", "tag", "lm", "ctc"):
        return torch.softmax(scores, 1).numpy()
    if spec.task == "multilabel":
        return torch.sigmoid(scores).numpy()
    return scores.numpy()
