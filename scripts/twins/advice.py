"""Follows the first advice that vramscope gives after a failure, and says whether the run goes on.

    LD_LIBRARY_PATH=FOLDER/fake CUDA_MODULE_LOADING=LAZY FOLDER/venv/bin/python \
        scripts/twins/advice.py OUT VRAMSCOPE [PROGRAM ...] [--given FOLDER ...]

Each program runs out of memory in several phases. The first change that `vramscope diagnose` says
fits is made, and the program runs with the same memory. `--given` takes folders with a
`manifest.json` as `record.py` writes it: what the change did is looked up there. OUT has the
recordings. Without a change that is said to fit, no advice is given: that is no failure.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

# Phases in which a program fails, with a part of what the phase adds to the peak before it.
PHASES = "forward 0,backward 0,optimizer 0,forward 1,backward 1,eval 1,forward 2,backward 2".split(
    ","
)
# At least this share of the advice must help, in percent.
DEMAND = 90


def first_fix(program, recording):
    """Returns the first change that is said to fit, as recipe and settings; None without one."""
    command = [program, "diagnose", str(recording), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = json.loads(done.stdout)["findings"]
    fixes = [fix for f in findings if f["kind"] == "oom" for fix in f.get("fixes", [])]
    fix = next((fix for fix in fixes if fix["outcome"] == "fits"), None)
    return fix and (fix["recipe"], fix["conf"] or "")


def given(program, folder):
    """Yields the cases of a folder: case, failed phase, advice, and whether the run went through
    with it; None if nobody ran it.
    """
    manifest = json.loads((folder / "manifest.json").read_text())
    for case in manifest["oom"]:
        advice = first_fix(program, folder / case["base"])
        rows = {(row["recipe"], row["settings"]): row["fits"] for row in case["changes"]}
        yield case["case"], case["failed"], advice, rows.get(advice)


def own(program, out, name):
    """Yields the same for a program that is run here."""
    import record

    base = record.run(name, "")
    for number, memory_mb in enumerate(sorted(set(record.memory_for(base, PHASES)))):
        path = out / f"{name}_{number}.pickle.gz"
        got = record.run(name, "", str(path), memory_mb)
        if not got or not got["failed"]:
            continue
        advice = first_fix(program, path)
        fits = None
        if advice:
            recipe, settings = advice
            change = ",".join(filter(None, [recipe, settings and f"set:{settings}"]))
            changed = record.run(name, change, str(out / f"{name}_{number}+.pickle.gz"), memory_mb)
            fits = changed and changed["failed"] is None
        yield f"{name}, {memory_mb} MiB", got["failed"], advice, fits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("vramscope")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--given", type=Path, action="append", default=[])
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("FAKECUDA_SHADOW", "1")
    sources = [given(asked.vramscope, folder) for folder in asked.given]
    if not asked.given or asked.programs:
        import train

        sources += [own(asked.vramscope, asked.out, p) for p in asked.programs or train.PROGRAMS]
    helped = followed = cases = 0
    for source in sources:
        for case, failed, advice, fits in source:
            cases += 1
            words = " + ".join(filter(None, advice)) if advice else "none"
            result = {True: "goes through", False: "FAILS", None: "not run"}[fits]
            place = f"{failed['phase']} {failed['step']}"
            print(f"{case:24} {place:13} {words:50} {result if advice else ''}", flush=True)
            followed += fits is not None
            helped += fits is True
    print(f"{helped} of {followed} go through with the first advice; {cases} failures")
    sys.exit(1 if helped * 100 < DEMAND * followed else 0)


if __name__ == "__main__":
    main()
