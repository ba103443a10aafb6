"""Files, runs and comparisons that the oracle's scripts share: data and parameters out of
Python into rnn_dist, and its numbers back."""
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
try:
    import h5py
    import numpy as np
    import torch
    from safetensors.numpy import save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import reference as ref  # noqa: E402

PROGRAM = os.environ.get("RNN_DIST", "rnn_dist")

# As tests/mpi_env.sh, for whoever runs a script by hand.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMP_WAIT_POLICY": "passive"}


def require_program():
    if not shutil.which(PROGRAM):
        print(f"skipped: no program {PROGRAM} (set RNN_DIST)")
        sys.exit(77)
    torch.set_num_threads(1)


def run(ranks, *args, status=0):
    """Runs the program on so many ranks, without a launcher on one; its standard output."""
    command = ["mpirun", "-np", str(ranks)] if ranks > 1 else []
    command += [PROGRAM, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          env={**MPI, **os.environ})
    if done.returncode != status:
        raise AssertionError(f"{' '.join(command)}\nexit {done.returncode}, not {status}\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout


def random_strings(rng, lengths, classes):
    """A string of labels for each sequence: often with repeats, sometimes one that just fits, one
    label too long, or empty. The first sequence with steps has a label."""
    strings = []
    for steps in lengths:
        few = int(rng.integers(1, min(classes, 3) + 1)) if rng.random() < 0.4 else classes
        labels = [int(k) for k in rng.integers(0, few, steps + 1)]
        most = steps
        while ref.steps_needed(labels[:most]) > steps:
            most -= 1
        kind = rng.random()
        if kind < 0.3:
            count = most + int(kind < 0.12)
        else:
            count = int(rng.integers(0, most + 1)) if kind > 0.4 else 0
        strings.append(labels[:count])
        if steps and sum(map(bool, lengths[:len(strings)])) == 1:
            strings[-1] = labels[:1]
    return strings


def write_data(path, data, inputs, rng):
    """A data file with these inputs, in any of the types that a user might choose."""
    def pick(array, kinds):
        return np.asarray(array).astype(kinds[rng.integers(len(kinds))])

    with h5py.File(path, "w") as f:
        f.attrs["format"] = "rnn_dist-data"
        f.attrs["version"] = 1
        f.attrs["task"] = data.task
        f["offsets"] = pick(data.offsets, ["i8", "i4", "u8", ">i8"])
        if data.tokens:
            f.attrs["vocab_size"] = data.outputs if data.task == "lm" else data.vocab
            f["inputs"] = pick(inputs, ["i4", "i8", "u2"])
        else:
            f["inputs"] = pick(inputs, ["f4", "f8", ">f4"])
        if data.strings is not None:
            f.attrs["num_classes"] = data.outputs - 1
            f["targets"] = pick(np.concatenate([[], *data.strings]), ["i4", "i8", "u1"])
            f["target_offsets"] = pick(np.cumsum([0, *map(len, data.strings)]), ["i8", "i4"])
        if data.targets is None:
            return
        if data.task in ("classify", "tag"):
            f.attrs["num_classes"] = data.outputs
            f["targets"] = pick(data.targets, ["i4", "i8", "i1"])
        elif data.task == "multilabel" and not np.isnan(data.targets).any():
            f["targets"] = pick(data.targets, ["u1", "f4", "i8"])
        else:
            f["targets"] = pick(data.targets, ["f4", "f8"])


def write_parameters(path, model):
    """As safetensors, or as a checkpoint that another tool wrote, by the name's suffix."""
    names = {n: p.detach().numpy().astype(np.float32) for n, p in
             model.named_parameters(remove_duplicate=False)}
    if path.endswith(".safetensors"):
        save_file(names, path)
        return
    with h5py.File(path, "w") as f:
        f.attrs["format"] = "rnn_dist-checkpoint"
        f.attrs["version"] = 1
        f.attrs["update"] = 0
        f.attrs["epoch"] = 0
        f.attrs["config"] = ""
        for name, value in names.items():
            f["model/" + name] = value


def round_parameters(model):
    """The same values in single and double precision."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.float().double())


def read_parameters(path):
    with h5py.File(path, "r") as f:
        return {name: value[...] for name, value in f["model"].items()}


def last_checkpoint(folder):
    return os.path.join(folder, max(n for n in os.listdir(folder) if n.startswith("ckpt-")))


def records(folder, event):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as f:
        return [r for r in map(json.loads, f) if r["event"] == event]


def off(a, b):
    """Largest error over largest value."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape:
        raise AssertionError(f"shape {a.shape}, not {b.shape}")
    if a.size == 0:
        return 0.0
    error, most = np.abs(a - b).max(), np.abs(b).max()
    return error / most if most else float("inf") if error else 0.0


def near(what, a, b, bound):
    error = off(a, b)
    if not error <= bound:
        raise AssertionError(f"{what}: off by {error:.3g} of the largest value, more than "
                             f"{bound:g}")
    return error
