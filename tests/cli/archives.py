"""archives.py PROGRAM FOLDER WHEEL... - packs each .ts file in some wheels and compares all
values, lengths, classes and targets with a parse that shares no code with the program's.
Exit 1 if one differs; see archives.sh.
"""
import fractions
import pathlib
import subprocess
import sys
import zipfile

import h5py
import numpy as np

MISSING = ("", "?", "na", "nan", "null")


def class_name(text):
    """1.0 and 1 are one class."""
    head, dot, tail = text.partition(".")
    return head if dot and head.lstrip("+-").isdigit() and not tail.strip("0") else text


def parse(text):
    """The classes of the header, or None; whether there are targets; the cases, each as a list
    of lists of fields; the text of each label."""
    classes, targets, steps = None, False, []
    lines = iter(text.splitlines())
    for line in lines:
        words = line.split()
        key = words[0].lower() if words else ""
        if key == "@data":
            break
        if key == "@timestamps" and words[1].lower() == "true":
            return None
        if key == "@classlabel" and words[1].lower() == "true":
            classes = [class_name(word) for word in words[2:]]
        if key == "@targetlabel":
            targets = words[1].lower() == "true"
    cases, labels = [], []
    for line in lines:
        line = line.strip()
        if not line or line[0] in "#%":
            continue
        fields = line.split(":")
        if classes is not None or targets:
            labels.append(fields.pop().strip())
        cases.append([[value.strip() for value in field.split(",")] for field in fields])
    return classes, targets, cases, labels


def is_missing(value):
    return value.lower() in MISSING


def nearest(value, text):
    """Whether value is the float32 nearest to the number in a text: float() rounds twice."""
    exact = fractions.Fraction(text)
    here = abs(fractions.Fraction(float(value)) - exact)
    return all(here <= abs(fractions.Fraction(float(np.nextafter(value, way))) - exact)
               for way in (np.float32(np.inf), np.float32(-np.inf)))


def equal(got, texts):
    """Whether float32 values are those of texts; NaN where they are missing."""
    want = np.array([np.nan if is_missing(t) else float(t) for t in texts]).astype("f4")
    odd = np.flatnonzero(~((got == want) | (np.isnan(got) & np.isnan(want))))
    return len(got) == len(want) and all(
        not np.isnan(got[i]) and not np.isnan(want[i]) and nearest(got[i], texts[i])
        for i in odd)


def compare(parsed, file):
    classes, targets, cases, labels = parsed
    offsets, inputs = file["offsets"][...], file["inputs"][...]
    assert len(offsets) == len(cases) + 1, "another number of cases"
    for n, case in enumerate(cases):
        steps = max(map(len, case))
        while steps and all(is_missing(dim[steps - 1]) for dim in case):
            steps -= 1
        got = inputs[offsets[n]:offsets[n + 1]]
        assert got.shape == (steps, len(case)), f"case {n}: {got.shape}"
        for d, dim in enumerate(case):
            assert equal(got[:, d], dim[:steps]), f"case {n}: dimension {d}"
    if classes is not None:
        assert file["classes"].asstr()[...].tolist() == classes, "classes"
        want = [-1 if is_missing(t) else classes.index(class_name(t)) for t in labels]
        assert file["targets"][...].tolist() == want, "labels"
    elif targets:
        assert equal(file["targets"][...][:, 0], labels), "targets"
    else:
        assert "targets" not in file
    return inputs.size


def main(program, folder, *wheels):
    folder, values, same, refused, faults = pathlib.Path(folder), 0, 0, 0, 0
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".ts")]
            for name in names:
                source, output = folder / "in.ts", folder / "out.h5"
                source.write_bytes(archive.read(name))
                parsed = parse(source.read_text(encoding="utf-8"))
                done = subprocess.run(
                    [program, "pack", "ts", "--missing", "mean", source, output],
                    capture_output=True, text=True, check=False)
                if parsed is None:
                    if done.returncode != 3 or "@timeStamps true" not in done.stderr:
                        print(f"{name}: time stamps: {done.returncode}: {done.stderr}")
                        faults += 1
                    refused += 1
                    continue
                try:
                    assert done.returncode == 0, done.stderr
                    with h5py.File(output) as file:
                        values += compare(parsed, file)
                    same += 1
                except (AssertionError, ValueError) as error:
                    print(f"{name}: {error}")
                    faults += 1
                output.unlink(missing_ok=True)
    print(f"{same} files with {values} values are equal; {refused} with time stamps are refused")
    return faults > 0 or same < 40


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
