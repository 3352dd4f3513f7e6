#!/usr/bin/env python3
"""Time and memory of a fleet of ranks: convert, index, series, queries.

usage: fleet.py [--sizes 64x20 256x20 1024x2] [--folder DIR] [--program PROGRAM] [--keep]

A size is RANKSxMEGABYTES. Each fleet is generated with four stages of a pipeline, one skewed and
one leaking rank. The program is a release build; DuckDB is the Python package.

Times depend on the machine. The figures to look at are ratios: the time per byte and the memory of
many ranks against those of few, and the time of `export` against that of `summary` on the same
files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# What the generator writes for an event with stacks of 32 frames.
BYTES_PER_EVENT = 133

STAGES, SKEWED, LEAKING = 4, 1, 1


class Cost(NamedTuple):
    """What one process took. `memory` is its largest resident set."""

    seconds: float
    memory: int


def run(*command: str | Path | int) -> Cost:
    """Runs a program, and fails if it does."""
    started = time.perf_counter()
    words = [str(word) for word in command]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    # Read to the end first: a full pipe would stop the program.
    errors = child.stderr.read() if child.stderr else b""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(words[:3])}: {child.returncode}\n{errors.decode()}")
    return Cost(time.perf_counter() - started, usage.ru_maxrss * 1024)


def generate(folder: Path, ranks: int, megabytes: float) -> None:
    """A fleet with planted differences."""
    events = round(megabytes * 1e6 / BYTES_PER_EVENT)
    run(
        *("cargo", "xtask", "gen", "--events", events, "--live", max(100, min(2000, events // 8))),
        *("--ranks", ranks, "--pipeline", STAGES, "--skew", SKEWED, "--leak", LEAKING),
        *("--iterations", 1, "--out", folder),
    )


def size(folder: Path, suffix: str) -> int:
    """The bytes of all files with a suffix."""
    return sum(path.stat().st_size for path in folder.rglob(f"*{suffix}"))


def queries(dataset: Path) -> dict[str, Cost]:
    """Each query of `vramscope sql`, in a process of its own."""
    text = (ROOT / "crates/vramscope-dataset/src/queries.sql").read_text()
    macros = (ROOT / "python/vramscope/vramscope.sql").read_text()
    costs = {}
    for name, query in re.findall(r"^-- ([\w-]+): [^\n]+\n(.*?;)$", text, re.DOTALL | re.MULTILINE):
        program = (
            "import duckdb, sys\n"
            "at = duckdb.connect()\n"
            "at.execute(f\"set variable dataset = '{sys.argv[1]}'; set variable stages = 4\")\n"
            "at.execute(sys.argv[2])\n"
            "at.execute(sys.argv[3]).fetchall()\n"
        )
        costs[name] = run(sys.executable, "-c", program, dataset, macros, query)
    return costs


# Sums the stored bytes of some columns of a table.
BYTES_OF_COLUMNS = """
import pathlib, sys
import pyarrow.parquet as parquet

read = 0
for path in pathlib.Path(sys.argv[1]).rglob("*.parquet"):
    metadata = parquet.ParquetFile(path).metadata
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in sys.argv[2:]:
                read += column.total_compressed_size
print(read)
"""


def bytes_read(dataset: Path) -> int:
    """What `peak by call site and rank` reads of a dataset.

    In a process of its own: what is imported here would count as memory of every program.
    """
    columns = ["rank", "band", "site", "bytes"]
    command = [sys.executable, "-c", BYTES_OF_COLUMNS, dataset / "peak", *columns]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def measure(ranks: int, megabytes: float, folder: Path, program: Path) -> dict[str, object]:
    """Everything of one fleet."""
    fleet, dataset = folder / f"fleet-{ranks}", folder / f"dataset-{ranks}"
    for made in (fleet, dataset):
        shutil.rmtree(made, ignore_errors=True)
    generate(fleet, ranks, megabytes)
    pickles = size(fleet, ".pickle")
    # The first reading of the files is of the disk.
    subprocess.run(["cat", *fleet.rglob("*.pickle")], stdout=subprocess.DEVNULL, check=True)
    index = folder / "fleet.vramscope"
    costs = {
        "summary": run(program, "summary", fleet, "--format", "json"),
        "export": run(program, "export", "--as", "parquet", fleet, "-o", dataset),
        "export again": run(program, "export", "--as", "parquet", fleet, "-o", dataset),
        "index": run(program, "export", "--as", "index", fleet, "-o", index),
        "index of dataset": run(
            program, "export", "--as", "index", dataset, "-o", folder / "again.vramscope"
        ),
        "ranks": run(program, "ranks", fleet, "--format", "json"),
    }
    by_query = queries(dataset)
    costs["all queries"] = Cost(
        sum(cost.seconds for cost in by_query.values()),
        max(cost.memory for cost in by_query.values()),
    )
    read, stored = bytes_read(dataset), size(dataset, ".parquet")
    rows = {
        name: {
            "seconds": round(cost.seconds, 2),
            "MB/s of pickles": round(pickles / 1e6 / cost.seconds),
            "memory MB": round(cost.memory / 1e6),
        }
        for name, cost in costs.items()
    }
    result = {
        "ranks": ranks,
        "pickles MB": round(pickles / 1e6, 1),
        "dataset MB": round(stored / 1e6, 2),
        "dataset of pickles": f"{stored / pickles:.2%}",
        "index MB": round(index.stat().st_size / 1e6, 2),
        "peak by call site and rank reads": f"{read / stored:.2%}",
        "costs": rows,
        "slowest query": max(by_query.items(), key=lambda query: query[1].seconds)[0],
    }
    return result


def main() -> None:
    """Measures fleets, and compares the largest with the smallest of equal files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["64x20", "256x20", "1024x2"])
    parser.add_argument("--folder", type=Path, default=ROOT / "target/bench-fleet")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/vramscope")
    parser.add_argument("--keep", action="store_true", help="keep the fleets and datasets")
    options = parser.parse_args()
    results = []
    for each in options.sizes:
        ranks, megabytes = each.split("x")
        result = measure(
            int(ranks), float(megabytes), options.folder.resolve(), options.program.resolve()
        )
        print(json.dumps(result, indent=2), flush=True)
        results.append((float(megabytes), result))
        if not options.keep:
            shutil.rmtree(options.folder / f"fleet-{ranks}")
            shutil.rmtree(options.folder / f"dataset-{ranks}")
    for megabytes, few in results:
        for other, many in results:
            if megabytes == other and few["ranks"] < many["ranks"]:
                print(f"\n{few['ranks']} to {many['ranks']} ranks of {megabytes:g} MB:")
                growth = many["pickles MB"] / few["pickles MB"]
                for name, cost in few["costs"].items():
                    after = many["costs"][name]
                    seconds = after["seconds"] / cost["seconds"]
                    memory = after["memory MB"] / cost["memory MB"]
                    print(
                        f"  {name:<18} time x{seconds:.2f} (bytes x{growth:.2f}), "
                        f"memory x{memory:.2f}"
                    )


if __name__ == "__main__":
    main()
