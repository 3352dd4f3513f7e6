#!/usr/bin/env python3
"""Writes test_data/ and the sample run of the site.

gen_test_data.py              writes the hand-made part: scenarios, edge, containers, damaged,
                              run_folder, holders, npu
gen_test_data.py RECORDINGS   also copies the recordings that testdata/recordings.py lists

Equal input gives equal bytes, so a second run leaves `git status` clean.
"""

import json
import os
import pickle
import shutil
import sys

import oracle
from testdata import containers, edges, holders, notation, npu, recordings, scenarios

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.join(ROOT, "test_data")


def write(folder, name, raw):
    os.makedirs(os.path.join(TARGET, folder), exist_ok=True)
    with open(os.path.join(TARGET, folder, name), "wb") as out:
        out.write(raw)


def write_json(folder, name, value):
    write(folder, name, (json.dumps(value, indent=1, ensure_ascii=True) + "\n").encode())


def hand_made():
    for folder in ("scenarios", "edge", "containers", "damaged", "run_folder", "npu"):
        shutil.rmtree(os.path.join(TARGET, folder), ignore_errors=True)
    for name, (_, devices) in scenarios.SCENARIOS.items():
        snapshot = notation.snapshot(name, [(d.trace, d.end) for d in devices])
        write("scenarios", f"{name}.pickle", pickle.dumps(snapshot, 4))
    write_json("scenarios", "expected.json", scenarios.expected())

    expected = {}
    for name, (about, raw, *plain) in edges.edges().items():
        write("edge", name, raw)
        expected[name] = {"about": about, "oracle": oracle.read(plain[0] if plain else raw, name)}
    write_json("edge", "expected.json", expected)

    expected = {}
    for name, raw, devices in npu.files():
        write("npu", name, raw)
        expected[name] = devices
    write_json("npu", "expected.json", expected)

    for name, raw in containers.run_folder().items():
        write("run_folder", name, raw)

    for name, (recording, made) in holders.FILES.items():
        write("holders", name, made(os.path.join(TARGET, recording)))

    for folder, files in (
        ("containers", containers.containers()),
        ("damaged", containers.damaged()),
    ):
        for name, (_, _, raw) in files.items():
            write(folder, name, raw)
        write_json(
            folder,
            "expected.json",
            {name: {"about": about, "peaks": peaks} for name, (about, peaks, _) in files.items()},
        )


def main(args):
    hand_made()
    if args:
        recordings.copy(args[0], TARGET, os.path.join(ROOT, "web", "site", "public", "sample"))


if __name__ == "__main__":
    main(sys.argv[1:])
