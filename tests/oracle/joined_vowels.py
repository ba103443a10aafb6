#!/usr/bin/env python3
"""joined_vowels.py - the model of examples/joined_vowels in PyTorch.

Reads the data that examples/joined_vowels/run.sh packed (OUT/train.h5 and OUT/test.h5), trains
the same model by the same number of updates (nn.LSTM, nn.CTCLoss, Adam, clipping), and prints
the label error rate of best paths. Usage: joined_vowels.py OUT [SEED...]
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.utils.rnn import (  # noqa: E402
    pack_padded_sequence, pad_packed_sequence, pad_sequence)

import reference as ref  # noqa: E402

HIDDEN, EPOCHS, BATCH, RATE, CLIP = 64, 30, 16, 0.005, 1.0


def read(path):
    with h5py.File(path) as f:
        inputs, offsets = f["inputs"][...], f["offsets"][...]
        labels, at = f["targets"][...], f["target_offsets"][...]
        classes = int(f.attrs["num_classes"])
    return (np.split(inputs, offsets[1:-1]), np.split(labels, at[1:-1]), classes)


class Net(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.rnn = nn.LSTM(inputs, HIDDEN, bidirectional=True)
        self.head = nn.Linear(2 * HIDDEN, classes + 1)

    def forward(self, sequences):
        lengths = torch.tensor([len(s) for s in sequences])
        packed = pack_padded_sequence(pad_sequence(sequences), lengths,
                                      enforce_sorted=False)
        y, _ = pad_packed_sequence(self.rnn(packed)[0])
        return torch.log_softmax(self.head(y), 2), lengths


def error_rate(net, inputs, labels):
    edits = 0
    with torch.no_grad():
        for s, target in zip(inputs, labels):
            edits += ref.distance(ref.best_path(net([s])[0][:, 0]), target.tolist())
    return edits / sum(map(len, labels))


def train(seed, inputs, labels, classes):
    torch.manual_seed(seed)
    net = Net(inputs[0].shape[1], classes)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    for _ in range(EPOCHS):
        order = torch.randperm(len(inputs)).tolist()
        for at in range(0, len(order), BATCH):
            batch = order[at:at + BATCH]
            scores, lengths = net([inputs[i] for i in batch])
            targets = torch.tensor(np.concatenate([labels[i] for i in batch]) + 1)
            sizes = torch.tensor([len(labels[i]) for i in batch])
            optimizer.zero_grad()
            nn.functional.ctc_loss(scores, targets, lengths, sizes).backward()
            nn.utils.clip_grad_norm_(net.parameters(), CLIP)
            optimizer.step()
    return net


def main():
    torch.set_num_threads(1)
    folder, seeds = sys.argv[1], [int(s) for s in sys.argv[2:]] or [1, 2, 3]
    inputs, labels, classes = read(os.path.join(folder, "train.h5"))
    test_inputs, test_labels, _ = read(os.path.join(folder, "test.h5"))
    steps = np.concatenate(inputs)
    mean, std = steps.mean(0), steps.std(0)
    scale = [[torch.tensor((s - mean) / std) for s in part]
             for part in (inputs, test_inputs)]
    for seed in seeds:
        net = train(seed, scale[0], labels, classes)
        print(f"seed {seed}: label error rate "
              f"{error_rate(net, scale[1], test_labels):.4f}", flush=True)


main()
