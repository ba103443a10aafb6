#!/usr/bin/env python3
"""checkpoint.py check FILE | bare FILE OUT | config FILE OUT | filter OUT | module OUT |
                 same FILE SAFETENSORS

What other tools do with checkpoints, by h5py, safetensors and PyTorch. Exit 77 where a module
is missing.
"""
import sys

try:
    import h5py
    import numpy as np
    from safetensors.numpy import load_file
    import torch
    from safetensors.torch import save_file
except ImportError as missing:
    print(missing)
    sys.exit(77)


def arrays(file):
    found = {}
    file.visititems(lambda name, item: found.__setitem__(name, item)
                    if isinstance(item, h5py.Dataset) else None)
    return found


def check(path):
    """The layout of rnn_dist-checkpoint(5), and a checksum on every array."""
    with h5py.File(path) as file:
        assert file.attrs["format"] == "rnn_dist-checkpoint", file.attrs["format"]
        assert file.attrs["version"] == 1 and file.attrs["update"] > 0
        assert file.attrs["epoch"] >= 0 and "hidden = 5" in file.attrs["config"]
        found = arrays(file)
        model = {n[len("model/"):]: d for n, d in found.items() if n.startswith("model/")}
        assert model["rnn.weight_ih_l0"].shape == (20, 2)
        assert model["rnn.weight_hh_l1_reverse"].shape == (20, 5)
        assert model["head.weight"].shape == (3, 10) and model["head.bias"].shape == (3,)
        for name, data in model.items():
            assert data.dtype == np.float32, name
            for moment in ("exp_avg", "exp_avg_sq"):
                if not name.startswith("input."):
                    assert found[f"optimizer/{moment}/{name}"].shape == data.shape, name
        assert found["state/update"][()][0] == file.attrs["update"]
        for name, data in found.items():
            assert data.fletcher32 or data.size == 0, name
            np.asarray(data)


def copy(path, out, keep):
    """The model alone, in double precision, as a script of ten lines would write it."""
    with h5py.File(path) as source, h5py.File(out, "w") as file:
        for name in ("format", "version", *keep):
            file.attrs[name] = source.attrs[name]
        for name, data in source["model"].items():
            file["model/" + name] = data[...].astype(np.float64)


def lzf(out):
    """A data set through a filter that no other library has."""
    with h5py.File(out, "w") as file:
        file.attrs.update({"format": "rnn_dist-data", "version": 1, "task": "classify",
                           "num_classes": 2})
        file.create_dataset("inputs", data=np.zeros((40, 3), "f4"), compression="lzf")
        file["offsets"], file["targets"] = [0, 30, 40], [0, 1]


def module(out):
    """A module of other names."""
    torch.manual_seed(3)
    net = torch.nn.ModuleDict({"lstm": torch.nn.LSTM(2, 5, 2, bidirectional=True),
                               "fc": torch.nn.Linear(10, 3)})
    save_file(net.state_dict(), out)


def same(path, tensors):
    want = {n.replace("lstm.", "rnn.").replace("fc.", "head."): a
            for n, a in load_file(tensors).items()}
    with h5py.File(path) as file:
        got = {n: d[...] for n, d in file["model"].items()}
    assert got.keys() == want.keys(), got.keys() ^ want.keys()
    for name, data in want.items():
        assert data.tobytes() == got[name].tobytes(), name


if __name__ == "__main__":
    word, *names = sys.argv[1:]
    if word == "check":
        check(*names)
    elif word == "bare":
        copy(*names, keep=["task"])
    elif word == "config":
        copy(*names, keep=["update", "epoch", "config"])
    elif word == "filter":
        lzf(*names)
    elif word == "module":
        module(*names)
    else:
        same(*names)
