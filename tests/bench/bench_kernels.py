#!/usr/bin/env python3
"""bench_kernels.py - the training passes of bench_kernels.c in PyTorch, padded and packed.

The same shapes and the same distribution of lengths, one thread, processor time, denormals
flushed, clip and SGD. Usage: bench_kernels.py [SECONDS [NAME]]
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

SHAPES = [  # name, cell, I, H, L, bidirectional, N, shortest, longest, V
    ("lstm-12-50", nn.LSTM, 12, 50, 1, False, 32, 7, 29, 0),
    ("lstm-36-50", nn.LSTM, 36, 50, 1, False, 32, 32, 128, 0),
    ("lstm-64-256x2", nn.LSTM, 64, 256, 2, False, 64, 5, 200, 0),
    ("gru-64-256x2", nn.GRU, 64, 256, 2, False, 64, 5, 200, 0),
    ("bilstm-64-128x2", nn.LSTM, 64, 128, 2, True, 64, 5, 200, 0),
    ("lstm-128-512x2", nn.LSTM, 128, 512, 2, False, 64, 20, 120, 0),
    ("gru-lm-512x3", nn.GRU, 256, 512, 3, False, 256, 35, 35, 10000),
    ("lstm-lm-200x2", nn.LSTM, 200, 200, 2, False, 20, 20, 20, 10000),
]


class Net(nn.Module):
    def __init__(self, cell, inputs, hidden, layers, bidirectional, vocab):
        super().__init__()
        self.rnn = cell(inputs, hidden, layers, bidirectional=bidirectional)
        self.embed = nn.Embedding(vocab, inputs) if vocab else None
        self.head = nn.Linear(hidden, vocab) if vocab else None


def passes(net, x, lengths, packed, vocab):
    """Loss of one batch: of a language model, or a fixed gradient on all real steps."""
    if vocab:
        y, _ = net.rnn(net.embed(x))
        scores = net.head(y).flatten(0, 1)
        return nn.functional.cross_entropy(scores, x.flatten())
    if packed:
        y, _ = net.rnn(pack_padded_sequence(x, lengths))
        return y.data.sum()
    y, _ = net.rnn(x)
    mask = torch.arange(x.shape[0])[:, None] < lengths[None, :]
    return (y * mask[:, :, None]).sum()


def measure(shape, packed, seconds):
    name, cell, inputs, hidden, layers, bi, count, low, high, vocab = shape
    torch.manual_seed(1)
    net = Net(cell, inputs, hidden, layers, bi, vocab)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    batches = []
    for _ in range(4):
        lengths = torch.randint(low, high + 1, (count,)).sort(descending=True).values
        if vocab:
            x = torch.randint(0, vocab, (high, count))
        else:
            x = pad_sequence([torch.randn(int(n), inputs) for n in lengths])
        batches.append((x, lengths, int(lengths.sum())))
    rates = []
    for round_ in range(6):
        start, steps = time.process_time(), 0
        while time.process_time() - start < seconds / 5 or steps == 0:
            for x, lengths, total in batches:
                optimizer.zero_grad()
                passes(net, x, lengths, packed, vocab).backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                steps += total
        if round_ > 0:
            rates.append(steps / (time.process_time() - start))
    return statistics.median(rates)


def main():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    for shape in SHAPES:
        if len(sys.argv) > 2 and sys.argv[2] not in shape[0]:
            continue
        padded = measure(shape, False, seconds)
        packed = 0.0 if shape[9] else measure(shape, True, seconds)
        print(f"{shape[0]:16s} padded {padded:10.0f} steps/s  packed {packed:10.0f} steps/s",
              flush=True)


main()
