#!/usr/bin/env python3
"""Writes the small data files of tests/golden/h5py as a user of h5py would.

test_dataset.c reads them; run this again (it needs h5py) only to change them.
"""
import pathlib
import zlib

import h5py
import numpy as np

folder = pathlib.Path(__file__).parent / "h5py"
folder.mkdir(exist_ok=True)


def start(name, task, **attributes):
    file = h5py.File(folder / name, "w")
    file.attrs["format"] = "rnn_dist-data"
    file.attrs["version"] = 1
    if task is not None:
        file.attrs["task"] = task
    for key, value in attributes.items():
        file.attrs[key] = value
    return file


with start("plain.h5", "classify", num_classes=3) as f:
    f["offsets"] = [0, 2, 2, 4]
    f["inputs"] = np.arange(8, dtype="f4").reshape(4, 2) / 4
    f["targets"] = [2, -1, 0]
    f["classes"] = ["eins", "zwei", "drei"]
    f["names"] = ["a", "", "größte"]

with start("odd.h5", np.bytes_("multilabel"), num_classes=np.uint8(2)) as f:
    f.attrs["format"] = np.bytes_("rnn_dist-data")
    f.attrs["version"] = np.array([1], dtype=">i2")
    f["offsets"] = np.array([0, 1, 3], dtype=">u2")
    f.create_dataset("inputs", data=np.arange(6).reshape(3, 2) / 4, dtype="f2", chunks=(2, 1),
                     compression="gzip", shuffle=True, maxshape=(None, 2))
    f["targets"] = np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)
    f["classes"] = np.array([b"ja", b"nein"])

with start("latin.h5", "classify", num_classes=4) as f:
    f["offsets"] = [0, 1]
    f["inputs"] = np.zeros((1, 3), dtype="f4")
    f["targets"] = [2]
    f["classes"] = np.array([text.encode("latin-1") for text in ("a", "b", "café", "d")])

with start("tokens.h5", "lm", vocab_size=np.float32(5)) as f:
    f["offsets"] = np.array([0.0, 4.0])
    f.create_dataset("inputs", data=[4, 0, 2, 1], dtype=">u8", fletcher32=True)

with start("text_inputs.h5", None) as f:
    f["offsets"] = [0, 2]
    f["inputs"] = ["a", "b"]

with start("group_inputs.h5", None) as f:
    f["offsets"] = [0, 2]
    f.create_group("inputs")

with start("scalar_offsets.h5", None) as f:
    f["offsets"] = 0
    f["inputs"] = np.zeros((2, 2))

with start("task_number.h5", 3) as f:
    f["offsets"] = [0, 2]
    f["inputs"] = np.zeros((2, 2))

with start("null_targets.h5", "tag", num_classes=2) as f:
    f["offsets"] = [0, 2]
    f["inputs"] = np.zeros((2, 2))
    f["targets"] = h5py.Empty("i4")

with start("half_class.h5", "tag", num_classes=2.5) as f:
    f["offsets"] = [0, 2]
    f["inputs"] = np.zeros((2, 2))
    f["targets"] = [0, 1]


# ---- files that claim what they do not hold, or whose values are elsewhere


def hostile(name, **arrays):
    """A good file of 3 sequences, but for the arrays that are given; None leaves one out."""
    file = start(name, "classify", num_classes=3)
    good = {"inputs": np.ones((9, 2), "f4"), "offsets": np.arange(0, 10, 3),
            "targets": np.array([0, 1, 2], "i4")}
    for key, value in {**good, **arrays}.items():
        if value is not None:
            file[key] = value
    return file


with hostile("claim_width.h5", inputs=None, offsets=np.zeros(4, "i8")) as f:
    f.create_dataset("inputs", (0, 1 << 62), "f4", chunks=(1, 1), maxshape=(None, 1 << 62))

with hostile("claim_rows.h5", inputs=None) as f:
    f.create_dataset("inputs", (1 << 40, 2), "f4", chunks=(8, 2), maxshape=(None, 2))

with hostile("claim_chunk.h5", inputs=None) as f:
    f.create_dataset("inputs", (9, 2), "f4", chunks=(1 << 28, 2), maxshape=(None, 2))

with hostile("claim_sequences.h5", offsets=None) as f:
    f.create_dataset("offsets", (1 << 30,), "i8", chunks=(8,), maxshape=(None,))

with hostile("claim_names.h5") as f:
    f.create_dataset("names", (3,), "S1000000000", chunks=(1,))

with hostile("virtual.h5", targets=None) as f:
    layout = h5py.VirtualLayout((3,), "i4")
    layout[...] = h5py.VirtualSource(".", "targets", (3,))
    f.create_virtual_dataset("targets", layout)

with hostile("external.h5", targets=None) as f:
    f.create_dataset("targets", (3,), "i4", external=[("plain.h5", 0, 12)])

with hostile("external_link.h5", targets=h5py.ExternalLink("plain.h5", "/targets")) as f:
    pass

with hostile("soft_external.h5", targets=h5py.SoftLink("/other/targets")) as f:
    f["other"] = h5py.ExternalLink("plain.h5", "/")

# Compressed so that a small file holds many references, all of them to one long string.
with hostile("shared_names.h5", inputs=np.ones((20000, 1), "i1"),
             offsets=np.arange(20001, dtype="u2"), targets=np.zeros(20000, "i1")) as f:
    names = f.create_dataset("names", (20000,), h5py.string_dtype(), chunks=(20000,),
                             compression="gzip")
    names[0] = "x" * 30000
    f.flush()
    _, packed = names.id.read_direct_chunk((0,))
    reference = zlib.decompress(packed)[:16]
    names.id.write_direct_chunk((0,), zlib.compress(reference * 20000, 9))
