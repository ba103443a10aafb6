#!/usr/bin/env python3
"""Writes the small data files of tests/golden/h5py as a user of h5py would.

test_dataset.c reads them; run this again (it needs h5py) only to change them.
"""
import pathlib

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
