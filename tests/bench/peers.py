"""peers.py - the same training updates in PyTorch, for compare.sh.

  peers.py make SHAPE DIR                 data.h5, and init.safetensors for both programs
  peers.py packed|padded|ddp SHAPE DIR UPDATES   prints {"steps_per_s": …, "loss": …}

A shape is a line of the file `shapes`. Sequences are classified into 10 classes by their last
state; with a vocabulary it is a language model on a stream of lanes, the state carried and
detached. Each update: input, forward, loss, backward, clipping, SGD. Three updates warm up.
One thread, denormals flushed: the best that the peer can do.
"""
import json
import os
import sys
import time

import h5py
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

CLASSES, WARM_UP, BATCHES, LR, CLIP = 10, 3, 8, 0.01, 1.0


class Shape:
    def __init__(self, name):
        here = os.path.dirname(os.path.abspath(__file__))
        for line in open(os.path.join(here, "shapes")):
            word = line.split()
            if word and word[0] == name:
                self.cell = word[1]
                (self.input, self.hidden, self.layers, self.directions, self.batch,
                 self.shortest, self.longest, self.vocab) = map(int, word[2:])
                return
        sys.exit(f"no shape {name}")


class Net(torch.nn.Module):
    """Parameters under the names that rnn_dist uses."""

    def __init__(self, s):
        super().__init__()
        if s.vocab:
            self.embed = torch.nn.Embedding(s.vocab, s.input)
        kind = torch.nn.LSTM if s.cell == "lstm" else torch.nn.GRU
        self.rnn = kind(s.input, s.hidden, s.layers, bidirectional=s.directions == 2)
        self.head = torch.nn.Linear(s.directions * s.hidden, s.vocab or CLASSES)

    def forward(self, loss):
        return loss(self)


def make(s, folder):
    rng = np.random.default_rng(1)
    with h5py.File(os.path.join(folder, "data.h5"), "w") as f:
        f.attrs["format"], f.attrs["version"] = "rnn_dist-data", 1
        if s.vocab:
            total = s.batch * s.longest * 64 + 1
            f.attrs["task"], f.attrs["vocab_size"] = "lm", s.vocab
            f["offsets"] = np.array([0, total])
            f["inputs"] = rng.integers(0, s.vocab, total).astype(np.int32)
        else:
            lengths = rng.integers(s.shortest, s.longest + 1, s.batch * BATCHES)
            f.attrs["task"], f.attrs["num_classes"] = "classify", CLASSES
            f["offsets"] = np.concatenate([[0], np.cumsum(lengths)])
            f["inputs"] = rng.standard_normal((lengths.sum(), s.input), dtype=np.float32)
            f["targets"] = rng.integers(0, CLASSES, len(lengths)).astype(np.int32)
    torch.manual_seed(1)
    save_file({k: v.contiguous() for k, v in Net(s).state_dict().items()},
              os.path.join(folder, "init.safetensors"))


def classify_batches(s, folder, packed, rank, ranks):
    """Endless; each entry is a function that gives the loss sum, and its steps."""
    with h5py.File(os.path.join(folder, "data.h5")) as f:
        offsets, x, y = f["offsets"][:], torch.tensor(f["inputs"][:]), f["targets"][:]
    lengths = np.diff(offsets)
    while True:
        for b in range(BATCHES):
            ids = range(b * s.batch + rank, (b + 1) * s.batch, ranks)
            ids = sorted(ids, key=lambda i: -lengths[i])
            seqs = [x[offsets[i]:offsets[i + 1]] for i in ids]
            n = torch.tensor([lengths[i] for i in ids])
            target = torch.tensor(y[ids]).long()

            def loss(net):
                batch = pad_sequence(seqs)
                if packed:
                    batch = pack_padded_sequence(batch, n)
                    _, state = net.rnn(batch)
                    h = state[0] if s.cell == "lstm" else state
                    last = torch.cat([h[-2], h[-1]], 1) if s.directions == 2 else h[-1]
                else:
                    # With two directions the reverse one has run through the padding: the
                    # same amount of work, but not the same numbers.
                    out, _ = net.rnn(batch)
                    last = out[n - 1, torch.arange(len(n)), :s.hidden]
                    if s.directions == 2:
                        last = torch.cat([last, out[0, :, s.hidden:]], 1)
                return torch.nn.functional.cross_entropy(net.head(last), target,
                                                         reduction="sum")

            yield loss, int(n.sum()), len(ids)


def stream_batches(s, folder, rank, ranks):
    with h5py.File(os.path.join(folder, "data.h5")) as f:
        tokens = torch.tensor(f["inputs"][:]).long()
    lanes = slice(rank, s.batch, ranks)
    a = tokens[:-1].view(s.batch, -1)[lanes].t()
    b = tokens[1:].view(s.batch, -1)[lanes].t()
    while True:
        state = None
        for t in range(0, a.shape[0], s.longest):
            def loss(net):
                nonlocal state
                out, new = net.rnn(net.embed(a[t:t + s.longest]), state)
                state = (tuple(h.detach() for h in new) if isinstance(new, tuple)
                         else new.detach())
                scores = net.head(out).flatten(0, 1)
                return torch.nn.functional.cross_entropy(
                    scores, b[t:t + s.longest].flatten(), reduction="sum")

            rows = s.longest * a.shape[1]
            yield loss, rows, rows


def train(s, folder, mode, updates):
    ranks = int(os.environ.get("WORLD_SIZE", "1")) if mode == "ddp" else 1
    rank = int(os.environ.get("RANK", "0")) if mode == "ddp" else 0
    net = Net(s)
    net.load_state_dict(load_file(os.path.join(folder, "init.safetensors")))
    model = net
    if mode == "ddp":  # of padded batches, which are faster
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(net)
    batches = (stream_batches(s, folder, rank, ranks) if s.vocab
               else classify_batches(s, folder, mode == "packed", rank, ranks))
    optim = torch.optim.SGD(net.parameters(), lr=LR)
    steps = total = targets = 0
    for update in range(WARM_UP + updates):
        if update == WARM_UP:
            start, steps, total, targets = time.perf_counter(), 0, 0.0, 0
        loss, rows, count = next(batches)
        optim.zero_grad()
        value = model(loss)
        whole = torch.tensor([float(count)])
        if mode == "ddp":  # one global count, since DDP would make a mean of means
            torch.distributed.all_reduce(whole)
        (value * ranks / whole[0]).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optim.step()
        steps, total, targets = steps + rows, total + value.item(), targets + count
    seconds = time.perf_counter() - start
    sums = torch.tensor([steps, total, targets], dtype=torch.float64)
    if mode == "ddp":
        torch.distributed.all_reduce(sums)
        torch.distributed.destroy_process_group()
    if rank == 0:
        print(json.dumps({"steps_per_s": sums[0].item() / seconds,
                          "loss": (sums[1] / sums[2]).item()}))


def main():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    mode, shape, folder = sys.argv[1], Shape(sys.argv[2]), sys.argv[3]
    if mode == "make":
        make(shape, folder)
    else:
        train(shape, folder, mode, int(sys.argv[4]))


main()
