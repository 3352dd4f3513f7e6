#!/usr/bin/env python3
"""Writes the pickles for the tests of vramscope-pickle: values and objects in each protocol.

gen_pickles.py FOLDER     (crates/vramscope-pickle/tests/data)
"""

import collections
import datetime
import fractions
import io
import pathlib
import pickle
import sys

shared = [1, 2]
VALUES = {
    "none": None,
    "t": True,
    "f": False,
    "ints": [
        0,
        1,
        -1,
        255,
        256,
        65535,
        65536,
        2**31 - 1,
        -(2**31),
        2**31,
        2**47,
        2**59,
        2**63 - 1,
        2**63,
        2**64 - 1,
        -(2**63),
        -(2**127),
        2**127 - 1,
    ],
    "floats": [0.5, -1e300],
    "s": "plain",
    "u": "é😀",
    "sur": "a\udc80b",
    "nul": "a\0b\nc\\",
    "long": "x" * 300,
    "tuple": (1, (2, 3), (), (4, 5, 6, 7)),
    "one": [1],
    "onekey": {"k": "v"},
    "a": shared,
    "b": shared,
    "empty": [[], {}, ()],
    "many": list(range(2500)),
    "nest": [[[["deep"]]]],
}
OBJECTS = {
    "before": 1,
    "od": collections.OrderedDict(a=1, b=2),
    "dd": collections.defaultdict(list, {"x": [1]}),
    "dq": collections.deque([1, 2]),
    "set": {1},
    "fs": frozenset([2]),
    "bytes": b"abc",
    "ba": bytearray(b"abc"),
    "c": 1j,
    "when": datetime.date(2026, 1, 2),
    "exc": ValueError("x"),
    "cls": fractions.Fraction,
    "after": 2,
}


def main(folder):
    folder = pathlib.Path(folder)
    for protocol in range(6):
        (folder / f"values_p{protocol}.pickle").write_bytes(pickle.dumps(VALUES, protocol))
    pure = io.BytesIO()
    pickle._Pickler(pure, 4).dump(VALUES)  # the pure-Python pickler batches differently
    (folder / "values_pure4.pickle").write_bytes(pure.getvalue())
    for protocol in (0, 1, 2, 4, 5):
        (folder / f"objects_p{protocol}.pickle").write_bytes(pickle.dumps(OBJECTS, protocol))


if __name__ == "__main__":
    main(sys.argv[1])
