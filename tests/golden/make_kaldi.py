#!/usr/bin/env python3
"""Writes small archives in Kaldi's forms: kaldi/feats.ark, .scp, same.ark and text.

Usage: make_kaldi.py [FOLDER]. Needs NumPy. The numbers are seeded. Written from the description
of the format, without its programs: feats.ark has each kind of binary matrix, same.ark, as text,
the values that a reader must find in it.
"""
import os
import sys

import numpy as np

COLUMNS = 5


def token(name):
    return b"\0B" + name.encode() + b" "


def plain(name, matrix, kind):
    size = b"".join(b"\4" + np.int32(n).tobytes() for n in matrix.shape)
    data = matrix.astype(kind)
    return token(name) + size + data.tobytes(), data.astype(np.float64)


def header(matrix, low, span):
    return (np.array([low, span], "<f4").tobytes()
            + np.array(matrix.shape, "<i4").tobytes())


def steps(matrix, name, kind, most):
    """CM2 and CM3: equal steps between the smallest and the largest value of all."""
    low, span = np.float32(matrix.min()), np.float32(matrix.max() - matrix.min())
    level = np.rint((matrix - low) / span * most).clip(0, most).astype(kind)
    return (token(name) + header(matrix, low, span) + level.tobytes(),
            float(low) + float(span) / most * level)


def quantiles(matrix):
    """CM: bytes 0, 64, 192 and 255 are four values of each column, and others lie between."""
    low, span = np.float32(matrix.min()), np.float32(matrix.max() - matrix.min())
    heads, columns, values = b"", b"", np.empty(matrix.shape)
    for k in range(matrix.shape[1]):
        x = np.sort(matrix[:, k])
        at = [0, len(x) // 4, 3 * len(x) // 4, len(x) - 1]
        mark = np.rint((x[at] - low) / span * 65535).astype("<u2")
        mark = np.maximum(mark, mark[0] + np.arange(4)).astype("<u2")
        heads += mark.tobytes()
        knots = float(low) + float(span) / 65535 * mark
        byte = np.rint(np.interp(matrix[:, k], knots, [0, 64, 192, 255])).astype("u1")
        columns += byte.tobytes()
        values[:, k] = np.interp(byte, [0, 64, 192, 255], knots)
    return token("CM") + header(matrix, low, span) + heads + columns, values


def as_text(matrix):
    rows = "".join("\n  " + " ".join(f"{v:.9g}" for v in row) + " " for row in matrix)
    return f" [{rows or ' '}]\n"


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "kaldi")
    rng = np.random.default_rng(20240901)

    def draw(rows):
        return rng.standard_normal((rows, COLUMNS)) * [1, 10, 0.1, 3, 1] + [0, 5, -2, 0, 100]

    made = [("utt_fm", plain("FM", draw(4), "<f4")), ("utt_dm", plain("DM", draw(3), "<f8")),
            ("utt_cm", quantiles(draw(40))), ("utt_cm2", steps(draw(9), "CM2", "<u2", 65535)),
            ("utt_cm3", steps(draw(9), "CM3", "u1", 255)),
            ("utt_empty", (token("CM") + bytes(16), np.zeros((0, COLUMNS)))),
            ("utt_one", plain("FM", draw(1), "<f4"))]
    words = ["b a", "c", "a b c c", "a", "", "", "c"]
    at = 0
    with open(os.path.join(folder, "feats.ark"), "wb") as ark, \
            open(os.path.join(folder, "feats.scp"), "w", encoding="ascii") as scp, \
            open(os.path.join(folder, "same.ark"), "w", encoding="ascii") as same:
        for name, (binary, values) in made:
            key = name.encode() + b" "
            print(f"{name} feats.ark:{at + len(key)}", file=scp)
            ark.write(key + binary)
            same.write(name + " " + as_text(values))
            at += len(key) + len(binary)
    with open(os.path.join(folder, "text"), "w", encoding="ascii") as text:
        for (name, _), line in reversed(list(zip(made, words))):
            print(f"{name} {line}".rstrip(), file=text)


main()
