"""same_bits.py OLD NEW - compares what two runs left in two folders, for same_bits.sh.

Prints one line with the number of files and arrays that are equal, or each difference.
"""
import json
import pathlib
import sys

import h5py

# What tells of time, or of what built the program.
NUMBERS_OF_TIME = {"seconds", "log_seconds", "log_wait"}
FIELDS_OF_TIME = {"time", "seconds", "steps_per_s", "idle", "host", "hosts"}


def arrays(path):
    """Every array and attribute of an HDF5 file, as bytes by name."""
    out = {}

    def visit(name, item):
        for key, value in item.attrs.items():
            out[f"{name}@{key}"] = repr(value).encode()
        if isinstance(item, h5py.Dataset):
            # Times differ, but each must be there, in its type and shape.
            out[name] = repr((item.dtype, item.shape)).encode()
            if name.split("/")[-1] not in NUMBERS_OF_TIME:
                value = item[()]
                out[name] += (value.tobytes() if item.dtype != object
                              else repr(value.tolist()).encode())

    with h5py.File(path) as file:
        visit("/", file)
        file.visititems(visit)
    return out


def records(path):
    """The records of metrics.jsonl, without the values that tell of time."""
    out = {}
    for number, line in enumerate(path.read_text().splitlines()):
        fields = {k: None if k in FIELDS_OF_TIME else v for k, v in json.loads(line).items()}
        out[f"line {number + 1}"] = json.dumps(fields).encode()
    return out


def contents(path):
    if path.suffix == ".h5":
        return arrays(path)
    if path.suffix == ".jsonl":
        return records(path)
    return {"bytes": path.read_bytes()}


def main():
    old, new = map(pathlib.Path, sys.argv[1:])
    names = {str(p.relative_to(d)) for d in (old, new) for p in d.rglob("*") if p.is_file()}
    names = {n for n in names if not n.endswith(("lock", ".lock"))}
    faults = parts = 0
    for name in sorted(names):
        if not ((old / name).is_file() and (new / name).is_file()):
            print(f"{new.name}: {name}: only one build wrote it")
            faults += 1
            continue
        a, b = contents(old / name), contents(new / name)
        parts += len(a)
        for part in sorted(a.keys() | b.keys()):
            if a.get(part) != b.get(part):
                print(f"{new.name}: {name}: {part} differs")
                faults += 1
    print(f"{new.name}: {len(names)} files, {parts} parts, {faults} differ")
    return faults > 0 or parts < 20


if __name__ == "__main__":
    sys.exit(main())
