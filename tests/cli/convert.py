#!/usr/bin/env python3
"""convert.py modules FOLDER | outputs [EXPORT DATA PREDICTIONS]... | expected FILE.npy...
convert.py mean EXPORT CHECKPOINT...

The other side of tests/cli/convert.sh. `outputs` loads exported files into PyTorch modules
and compares what they compute with what `predict --raw` wrote. `modules` saves the state_dict
of modules of other names as safetensors and HDF5, in several floating-point types, FILE
beside FILE.npy: the outputs, in double precision, of the module with those values. `expected`
compares those with FILE.p.h5. `mean` compares an export with the mean of checkpoints. Exit 77 where a module is missing.
"""
import sys

try:
    import h5py
    import numpy as np
    import torch
    from safetensors.torch import load_file, save_file, safe_open
    from torch import nn
    from torch.nn.utils import parametrizations
except ImportError as missing:
    print(missing)
    sys.exit(77)

BOUND = 1e-6  # of the largest output


def load(path):
    """State_dict and configuration of an exported file."""
    if path.endswith(".h5"):
        with h5py.File(path) as file:
            config = file.attrs["rnn_dist.config"]
            state = {name: torch.tensor(array[...]) for name, array in file.items()}
    elif path.endswith(".npz"):
        with np.load(path) as file:
            texts = {name: file[name].item().decode() for name in file
                     if name.startswith("rnn_dist.")}
            state = {name: torch.tensor(file[name]) for name in file if name not in texts}
        config = texts["rnn_dist.config"]
    else:
        state = load_file(path)
        with safe_open(path, "pt") as file:
            config = file.metadata()["rnn_dist.config"]
    pairs = (line.split(" = ", 1) for line in config.splitlines())
    return state, {name: value.strip('"') for name, value in pairs}


class Net(nn.Module):
    """Embedding or features, recurrent layers, pooling or none, linear layer."""

    def __init__(self, cell, inputs, hidden, outputs, layers=1, both=False, vocab=0):
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}.get(cell, nn.RNN)
        more = {} if cell in ("lstm", "gru") else {"nonlinearity": cell[4:]}
        if vocab:
            self.embed = nn.Embedding(vocab, inputs)
        self.rnn = kind(inputs, hidden, layers, bidirectional=both, batch_first=True, **more)
        self.head = nn.Linear(hidden * (2 if both else 1), outputs)

    def forward(self, x, pool=None):
        if hasattr(self, "embed"):
            x = self.embed(x)
        out, state = self.rnn(x[None])
        if pool == "max":
            out = out.max(dim=1).values
        elif pool == "last":
            last = state[0] if isinstance(state, tuple) else state
            both = self.rnn.bidirectional
            out = torch.cat([last[-2], last[-1]], 1) if both else last[-1]
        return self.head(out).reshape(-1, self.head.out_features)


def sequences(path):
    with h5py.File(path) as file:
        inputs, offsets = file["inputs"][...], file["offsets"][...]
        task = file.attrs["task"]
    kind = torch.long if inputs.dtype.kind in "iu" else torch.double
    return [torch.tensor(inputs[a:b]).to(kind)
            for a, b in zip(offsets[:-1], offsets[1:])], task


def run(net, path, pool):
    """Outputs of all sequences, one after the other."""
    found, task = sequences(path)
    pool = pool if task in ("classify", "regress") else None
    with torch.no_grad():
        return torch.cat([net(x, pool) for x in found if len(x)]).numpy()


def compare(name, got, want):
    assert got.shape == want.shape, (name, got.shape, want.shape)
    worst = np.abs(got - want).max() / np.abs(want).max()
    assert worst < BOUND, (name, worst)


def outputs(*names):
    for exported, data, predictions in zip(names[::3], names[1::3], names[2::3]):
        check(exported, data, predictions)


def check(exported, data, predictions):
    state, config = load(exported)
    mean, std = state.pop("input.mean", 0), state.pop("input.std", 1)
    weight = state["rnn.weight_ih_l0"]
    vocab = len(state["embed.weight"]) if "embed.weight" in state else 0
    net = Net(config["cell"], weight.shape[1], int(config["hidden"]),
              len(state["head.bias"]), int(config["layers"]),
              config["bidirectional"] == "yes", vocab).double()
    net.load_state_dict(state)  # strict: no name is missing or left over
    if not vocab:
        inner = net.rnn.forward
        net.rnn.forward = lambda x: inner((x - mean) / std)
    with h5py.File(predictions) as file:
        compare(exported, file["outputs"][...], run(net, data, config.get("pool")))


def renamed(state, rename):
    return {next((new + name[len(old):] for old, new in rename if name.startswith(old)),
                 name): value.clone() for name, value in state.items()}


def module(kind, folder):
    """All files of one module."""
    torch.manual_seed(7)
    tokens = words(f"{folder}/words.h5")
    data, made, rename = {
        "bilstm": ("series", Net("lstm", 3, 6, 4, 2, True),
                   [("rnn.", "lstm."), ("head.", "fc.")]),
        "gru": ("values", Net("gru", 3, 6, 2),
                [("rnn.", "encoder.gru."), ("head.", "decoder.")]),
        "elman": ("values", Net("rnn_relu", 3, 6, 2, 2), []),
        "normed": ("values", Net("gru", 3, 6, 2), []),
        "older": ("values", Net("lstm", 3, 6, 2), []),
        "cell": ("values", Net("lstm", 3, 6, 2), [("rnn.", "core.cell.")]),
        "inside": ("values", Net("rnn_tanh", 3, 6, 2), [("", "encoder.")]),
        "wrapped": ("steps", Net("lstm", 5, 6, 4, vocab=9), [("", "module.model.")]),
        "shared": ("words", Net("gru", 6, 6, tokens, vocab=tokens),
                   [("embed.", "emb."), ("head.", "out.")])}[kind]
    if kind == "shared":
        made.head.weight = made.embed.weight
    if kind == "normed":
        parametrizations.weight_norm(made.rnn, "weight_hh_l0")
        parametrizations.weight_norm(made.head, "weight", dim=1)
    if kind == "older":
        made.rnn = nn.utils.weight_norm(made.rnn, "weight_ih_l0")
    types = [torch.float32]
    if kind == "bilstm":
        types += [torch.float64, torch.float16, torch.bfloat16]
    for dtype in types:
        # the module computes with the values that this type can hold
        state = {name: value.to(dtype) for name, value in made.state_dict().items()}
        made.load_state_dict(state)
        want = run(made.double(), f"{folder}/{data}.h5", "last")
        made.float()
        state = renamed(state, rename)
        if kind == "cell":
            state = {name.removesuffix("_l0"): value for name, value in state.items()}
        if kind == "inside":
            state["decoder.weight_ih_l0"] = torch.zeros(3, 3)
        stem = f"{folder}/{kind}.{str(dtype)[6:]}"
        save_file(state, stem + ".safetensors")
        np.save(stem + ".safetensors.npy", want)
        if dtype != torch.bfloat16:
            if kind == "shared":  # one name is enough
                del state["out.weight"]
            with h5py.File(stem + ".h5", "w") as file:
                for name, value in state.items():
                    file[name] = value.numpy()
            np.save(stem + ".h5.npy", want)


def modules(folder):
    for kind in ("bilstm", "gru", "elman", "normed", "older", "cell", "inside", "wrapped",
                 "shared"):
        module(kind, folder)


def words(data):
    with h5py.File(data) as file:
        return int(file.attrs["vocab_size"])


def expected(*files):
    for name in files:
        with h5py.File(name[:-4] + ".p.h5") as file:
            compare(name, file["outputs"][...], np.load(name))


def mean(exported, *checkpoints):
    assert len(checkpoints) == 3, checkpoints
    found, _ = load(exported)
    for name, value in found.items():
        parts = []
        for path in checkpoints:
            with h5py.File(path) as file:
                parts.append(file["model"][name][...].astype("f8"))
        want = np.mean(parts, axis=0).astype("f4")
        assert np.abs(value.numpy() - want).max() <= np.spacing(np.abs(want).max()), name
        assert (parts[0] != parts[1]).any(), (name, "did not change")


if __name__ == "__main__":
    {"modules": modules, "outputs": outputs, "expected": expected, "mean": mean}[sys.argv[1]](*sys.argv[2:])
