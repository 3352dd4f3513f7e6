#!/usr/bin/env python3
"""Errors of predicted changes of programs, per recipe.

usage: recipes.py PROGRAM FOLDER... [--rows]

PROGRAM is vramscope. A FOLDER has a `manifest.json` as `scripts/twins/record.py` writes it: pairs
of an unchanged recording and the peaks of the program with one change, and failures with the
changes that go through. Errors are in percent of what PyTorch measured. Exits with 1 if fewer than
85 % of the pairs are answered, fewer than 90 % of the answers are within 5 %, or more than 3 % of
the changes after a failure are wrongly said to fit.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ANSWERED, NEAR, WRONG = 85, 90, 3


class Answer(NamedTuple):
    """The errors of a pair in percent, and whether the range holds the reserved peak."""

    recipe: str
    active: float
    reserved: float
    is_inside: bool


def ask(program: str, file: Path, recipe: str, settings: str, memory: int | None = None) -> dict:
    """The scenario of a change."""
    command = [program, "what-if", str(file), "--format", "json"]
    command += ["--apply", recipe] if recipe else []
    command += ["--set", settings] if settings else []
    command += ["--pytorch-memory", str(memory)] if memory else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"declined": done.stderr.strip() or f"exit status {done.returncode}"}
    report = json.loads(done.stdout)
    if report["declined"]:
        return {"declined": report["declined"]}
    same = [s for s in report["scenarios"] if not settings or s["conf"] == settings]
    return same[0]


def kind(recipe: str, settings: str) -> str:
    """The recipe of a table's row: without its number or line."""
    if "," in recipe:
        return "several at once"
    if not recipe:
        return "settings alone"
    name, _, value = recipe.partition(":")
    number = {"batch": "K", "sequence": "K", "eval_batch": "K", "del": "FILE:LINE"}
    number |= {"accumulate": "N", "chunked_loss": "N", "shard": "N"}
    value = number.get(name, value)
    return (f"{name}:{value}" if value else name) + (" and settings" if settings else "")


def quantile(values: list[float], part: float) -> float:
    """The least value that `part` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def errors(values: list[float]) -> str:
    """Median, 95th percentile and worst of absolute errors."""
    values = [abs(value) for value in values]
    if not values:
        return f"{'-':>6} {'-':>6} {'-':>6}"
    return " ".join(f"{quantile(values, part):6.1f}" for part in (0.5, 0.95, 1))


def row(name: str, pairs: int, answers: list[Answer]) -> None:
    """Prints a row of the table."""
    active = errors([answer.active for answer in answers])
    reserved = errors([answer.reserved for answer in answers])
    inside = sum(answer.is_inside for answer in answers)
    print(f"{name:28} {len(answers):5} of {pairs:<4} {active}   {reserved} {inside:7}")


def answer_of(program: str, folder: Path, pair: dict, rows: bool) -> Answer | None:
    """Compares the answer about a pair with what was measured."""
    said = ask(program, folder / pair["base"], pair["recipe"], pair["settings"])
    name = f"{pair['program']} {pair['recipe'] or pair['settings']}"
    if said["declined"]:
        if rows:
            print(f"{name}: {said['declined']}")
        return None
    peak = pair["peak"]
    error = {k: 100 * (said[f"{k}_peak"] / peak[k] - 1) for k in ("active", "reserved")}
    if rows:
        print(f"{name}: active {error['active']:+.1f} %, reserved {error['reserved']:+.1f} %")
    low, high = said["reserved_range"]
    is_inside = low <= peak["reserved"] <= high
    return Answer(kind(pair["recipe"], pair["settings"]), **error, is_inside=is_inside)


def failures(program: str, folder: Path, pool: ThreadPoolExecutor) -> tuple[int, int, int]:
    """All changes after failures, those answered rightly, and those wrongly said to fit."""
    cases = json.loads((folder / "manifest.json").read_text())["oom"]
    changes = [(case, change) for case in cases for change in case["changes"]]

    def fits(one: tuple[dict, dict]) -> bool | None:
        case, change = one
        file, memory = folder / case["base"], case["pytorch_memory"]
        said = ask(program, file, change["recipe"], change["settings"], memory)
        return None if said["declined"] else said["fits"]

    right = wrong = unknown = 0
    for (case, change), said in zip(changes, pool.map(fits, changes), strict=True):
        right += said == change["fits"]
        unknown += said is None
        if said and not change["fits"]:
            wrong += 1
            print(f"{case['case']} {change['recipe'] or change['settings']}: wrongly said to fit")
    print(f"after a failure: {right} of {len(changes)} right, {unknown} not known, {wrong} wrongly")
    return len(changes), right, wrong


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--rows", action="store_true", help="print each pair, too")
    asked = parser.parse_args()
    pairs: dict[str, int] = {}
    answers: list[Answer] = []
    changes = wrong = 0
    with ThreadPoolExecutor(2) as pool:
        for folder in asked.folders:
            of = json.loads((folder / "manifest.json").read_text())["pairs"]
            for pair in of:
                name = kind(pair["recipe"], pair["settings"])
                pairs[name] = pairs.get(name, 0) + 1
            found = pool.map(lambda p, f=folder: answer_of(asked.program, f, p, asked.rows), of)
            answers += [answer for answer in found if answer]
        print(f"{'error in percent':44} active: median, 95 %, worst   reserved   in range")
        for name in sorted(pairs):
            row(name, pairs[name], [answer for answer in answers if answer.recipe == name])
        every = sum(pairs.values())
        row("all", every, answers)
        for folder in asked.folders:
            of_folder = failures(asked.program, folder, pool)
            changes, wrong = changes + of_folder[0], wrong + of_folder[2]
    near = sum(abs(answer.active) <= 5 for answer in answers)
    print(f"{near} of {len(answers)} answers are within 5 %")
    is_good = len(answers) * 100 >= ANSWERED * every and near * 100 >= NEAR * len(answers)
    sys.exit(0 if is_good and wrong * 100 <= WRONG * changes else 1)


if __name__ == "__main__":
    main()
