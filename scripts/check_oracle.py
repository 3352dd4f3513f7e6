#!/usr/bin/env python3
"""Compares the program with an independent reading of all snapshots in some folders.

check_oracle.py PROGRAM FOLDER... [--oracle SCRIPT]

SCRIPT reads one snapshot and prints its figures as JSON in the form of oracle.py, the default.
Damaged files must give exit code 2 and an error, or a warning. The exit code is 0 when all figures
are equal.
"""

import argparse
import glob
import json
import os
import subprocess
import sys

FIGURES = (
    "events",
    "segments",
    "allocations_in_window",
    "preexisting_freed",
    "preexisting_live",
    "end_live_blocks",
)
BANDS = {"active": "requested_bytes", "reserved": "reserved_bytes"}
FIELDS = {
    "start_bytes": "start",
    "peak_bytes": "peak",
    "peak_event": "peak_event",
    "end_bytes": "end",
}


def figures(path, oracle, program):
    """Yields (name, expected, found) of each figure of one file.

    A file that the oracle cannot read must give an error or a warning.
    """
    read = subprocess.run([sys.executable, oracle, path], capture_output=True, text=True)
    ran = subprocess.run(
        [program, "summary", "--format", "json", path], capture_output=True, text=True
    )
    file = json.loads(ran.stdout)["files"][0]
    if read.returncode or not read.stdout:
        yield "an error or a warning", True, ran.returncode == 2 or bool(file["warnings"])
        return
    devices = {d["device"]: d for d in file["devices"]}
    for want in json.loads(read.stdout)["devices"]:
        found = devices.get(want["device"])
        yield f"device {want['device']}", True, found is not None
        if found is None:
            continue
        for key in FIGURES:
            yield key, want[key], found[key]
        for theirs, ours in BANDS.items():
            for a, b in FIELDS.items():
                yield f"{ours}.{b}", want[theirs][a], found[ours][b]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument(
        "--oracle", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle.py")
    )
    args = parser.parse_args()
    compared = different = 0
    for folder in args.folders:
        names = [
            n
            for ending in ("pickle", "pickle.gz")
            for n in glob.glob(f"{folder}/**/*.{ending}", recursive=True)
        ]
        for path in sorted(names):
            for what, want, found in figures(path, args.oracle, args.program):
                compared += 1
                if want != found:
                    different += 1
                    print(f"{path}: {what} is {found}, expected {want}")
    print(f"{compared - different} of {compared} figures are equal")
    sys.exit(different > 0 or compared == 0)


if __name__ == "__main__":
    main()
