#!/usr/bin/env python3
"""ctc.py - loss and gradient of connectionist temporal classification, here and in PyTorch.

Random scores and strings of one shape. Passes of both are timed in turn, so that a loaded
machine slows both; processor time on one thread, else real time. PyTorch is timed with the
log-softmax, which the other side always computes, and from log-probabilities on. Usage:
ctc.py BENCH_CTC [STEPS SEQUENCES LABELS CLASSES THREADS [ROUNDS]], where BENCH_CTC is
tests/bench/bench_ctc of a build (make tests/bench/bench_ctc).
"""
import statistics
import subprocess
import sys
import time

import torch
from torch.nn.functional import ctc_loss, log_softmax


def main():
    sizes = [int(x) for x in sys.argv[2:7]] or [500, 64, 50, 60, 1]
    steps, sequences, labels, classes, threads = sizes
    rounds = int(sys.argv[7]) if len(sys.argv) > 7 else 20
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    torch.manual_seed(1)
    scores = torch.empty(steps, sequences, classes + 1).uniform_(-2, 2)
    strings = torch.randint(1, classes + 1, (sequences, labels))
    lengths = torch.full((sequences,), steps), torch.full((sequences,), labels)

    def torch_pass(softmax):
        x = (scores if softmax else log_softmax(scores, 2)).clone().requires_grad_()
        start = clock()
        y = log_softmax(x, 2) if softmax else x
        ctc_loss(y, strings, *lengths).backward()
        return clock() - start

    command = [sys.argv[1], *map(str, sizes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, bufsize=1) as bench:
        def own_pass():
            bench.stdin.write("\n")
            return float(bench.stdout.readline())

        times = [(own_pass(), torch_pass(True), torch_pass(False))
                 for _ in range(rounds + 2)][2:]
        bench.stdin.close()
    own, whole, bare = (statistics.median(column) for column in zip(*times))
    ratio = statistics.median(t[1] / t[0] for t in times)
    bare_ratio = statistics.median(t[2] / t[0] for t in times)
    print(f"steps {steps}, sequences {sequences}, labels {labels}, classes {classes}, "
          f"threads {threads}: {1e3 * own:.1f} ms; PyTorch {torch.__version__} "
          f"{1e3 * whole:.1f} ms ({ratio:.1f} times), without log-softmax "
          f"{1e3 * bare:.1f} ms ({bare_ratio:.1f} times)")


main()
