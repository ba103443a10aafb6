"""peers.py - the recurrent layers of device-check.sh in PyTorch on the same GPU.

  peers.py CELL INPUT HIDDEN LAYERS DIRECTIONS BATCH SHORTEST LONGEST PRECISION packed|padded

Prints milliseconds of forward, and of forward with backward. Lengths are those of bench.c.
"""
import sys
import time

import torch
from torch.nn.utils.rnn import pack_padded_sequence

WARM_UP, ROUNDS = 3, 10


def main():
    cell, *numbers, precision, form = sys.argv[1:]
    inputs, hidden, layers, directions, batch, shortest, longest = map(int, numbers)
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = precision != "fp32"
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    kind = torch.nn.LSTM if cell == "lstm" else torch.nn.GRU
    net = kind(inputs, hidden, layers, bidirectional=directions == 2).cuda().to(dtype)
    length = [longest - j * (longest - shortest) // max(batch - 1, 1) for j in range(batch)]
    x = torch.randn(longest, batch, inputs, device="cuda", dtype=dtype)
    packed = pack_padded_sequence(x, length) if form == "packed" else x

    def forward():
        y = net(packed)[0]
        return y.data if form == "packed" else y

    def both():
        net.zero_grad(set_to_none=True)
        y = forward()
        y.backward(torch.ones_like(y))

    def without_gradient():
        with torch.no_grad():
            forward()

    def milliseconds(work):
        for _ in range(WARM_UP):
            work()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(ROUNDS):
            work()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3 / ROUNDS

    print(f"{milliseconds(without_gradient):.3f} {milliseconds(both):.3f}")


main()
