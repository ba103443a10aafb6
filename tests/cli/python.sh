#!/bin/sh
# python.sh - python/rnn_dist.py: what it writes is what the program reads, what it returns is
# what the program wrote. Exit 77 without NumPy and h5py.
# shellcheck source=tests/cases/lib.sh
. "$(dirname "$0")/../cases/lib.sh"

python=${PYTHON:-python3}
if ! "$python" -c 'import numpy, h5py' 2>"$work/why"; then
    tail -n 1 "$work/why"
    exit 77
fi
RNN_DIST=$(command -v "$RNN_DIST")
export RNN_DIST
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$srcdir/python "$python" - "$work" <<'END' || fault "see above"
import os
import sys

import numpy as np
import rnn_dist

os.chdir(sys.argv[1])
draw = np.random.default_rng(1)
lengths = [5, 1, 0, 9, 4, 7]
series = [draw.normal(size=(n, 3)) for n in lengths]

# a class per sequence, with names
rnn_dist.write_data("a.h5", series, [0, 1, 1, 0, 1, -1], classes=["no", "yes"],
                    names=list("abcdef"))


def told(path):
    lines = rnn_dist.run("inspect", path).splitlines()
    return dict(line.split(None, 1) for line in lines)


said = told("a.h5")
assert (said["sequences"], said["steps"], said["targets"]) == ("6", "26", "5"), said
assert said["classes"] == "[no, yes]" and said["task"] == "classify", said
records = rnn_dist.train(data="a.h5", run_dir="run", hidden=4, epochs=2, batch=3,
                         normalize=True, bidirectional=False, threads=1, log_every=1)
assert [r["update"] for r in records if r.get("event") == "train"] == [1, 2, 3, 4]
found = rnn_dist.evaluate("run", data="a.h5", threads=1)
assert found["targets"] == 5 and 0 <= found["accuracy"] <= 1, found
rnn_dist.predict("run", data="a.h5", out="p.h5", csv="p.csv", threads=1)
scores = rnn_dist.read_predictions("p.h5")
assert len(scores) == 6 and all(abs(s.sum() - 1) < 1e-5 for s in scores), scores
with open("p.csv") as lines:
    rows = [line.rstrip("\n").split(",") for line in lines]
assert [row[0] for row in rows[1:]] == list("abcdef"), rows
assert rows[0][:3] == ["sequence", "prediction", "target"], rows[0]
assert [row[2] for row in rows[1:]] == ["no", "yes", "yes", "no", "yes", ""], rows
assert np.allclose([[float(x) for x in row[3:]] for row in rows[1:]], scores)

# values per step, as many steps as sequences; padded and not
six = [draw.normal(size=(n, 2)) for n in (3, 0, 0, 1, 1, 1)]
rnn_dist.write_data("s.h5", six, [s[:, :1] for s in six], task="regress_steps")
rnn_dist.train(data="s.h5", run_dir="steps", hidden=4, epochs=1, threads=1, ranks=2)
rnn_dist.predict("steps", data="s.h5", out="s.p.h5", threads=1)
scores = rnn_dist.read_predictions("s.p.h5")
assert [len(s) for s in scores] == [3, 0, 0, 1, 1, 1], scores
rnn_dist.predict("steps", data="s.h5", out="pad.h5", pad=4, threads=1)
for a, b in zip(scores, rnn_dist.read_predictions("pad.h5")):
    assert (a == b).all() and a.shape == b.shape

# tokens, with and without targets
rnn_dist.write_data("w.h5", [[0, 1, 2], [], [2, 2]], task="lm", vocab=["the", "cat", "sat"])
said = told("w.h5")
assert (said["task"], said["vocab_size"], said["steps"]) == ("lm", "3", "5"), said
rnn_dist.write_data("u.h5", series)
rnn_dist.predict("run", data="u.h5", out="u.p.h5", threads=1)
assert len(rnn_dist.read_predictions("u.p.h5")) == 6

# features without a value
holes = [s.copy() for s in series]
holes[0][2, 1] = np.nan
rnn_dist.write_data("h.h5", holes, [0, 1, 1, 0, 1, -1], classes=2, missing="mean")
found = rnn_dist.evaluate("run", data="h.h5", threads=1)
assert found["targets"] == 5 and found["loss"] > 0, found

# failures
try:
    rnn_dist.train(data="none.h5", run_dir="x")
except rnn_dist.Error as error:
    assert error.status == 4 and "none.h5" in str(error), (error.status, error)
else:
    raise AssertionError("a missing file is no error")
try:
    rnn_dist.write_data("bad.h5", [np.zeros((2, 2, 2))])
except ValueError as error:
    assert "(2, 2, 2)" in str(error), error
else:
    raise AssertionError("three dimensions are no error")
END
done_testing
