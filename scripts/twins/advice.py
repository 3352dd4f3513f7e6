"""Follows the first advice that vramscope gives after a failure, and says whether the run goes on.

    LD_LIBRARY_PATH=FOLDER/fake CUDA_MODULE_LOADING=LAZY FOLDER/venv/bin/python \
        scripts/twins/advice.py OUT VRAMSCOPE [PROGRAM ...] [--given FOLDER ...]

Each program runs out of memory in several phases. The first change that `vramscope diagnose` says
fits is made, and the program runs with the same memory. `--given` takes folders with a
`manifest.json` as `record.py` writes it: what the change did is looked up there. OUT has the
recordings. Without a change that is said to fit, no advice is given: that is no failure.

A change that `covers` a step is about the failed step and one more. A run that fails later, or in
an evaluation that the recording does not have, went as far as it was said.
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
    """Returns the first change that is said to fit: recipe, settings, and what it covers. None
    without one.
    """
    command = [program, "diagnose", str(recording), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = json.loads(done.stdout)["findings"]
    fixes = [fix for f in findings if f["kind"] == "oom" for fix in f.get("fixes", [])]
    fix = next((fix for fix in fixes if fix["outcome"] == "fits"), None)
    return fix and (fix["recipe"], fix["conf"] or "", fix["covers"])


def given(program, folder):
    """Yields the cases of a folder: case, failed phase, advice, and the failure of the run with it;
    "" if it went through, None if nobody ran it.
    """
    manifest = json.loads((folder / "manifest.json").read_text())
    for case in manifest["oom"]:
        advice = first_fix(program, folder / case["base"])
        rows = {(row["recipe"], row["settings"]): row["failed"] or "" for row in case["changes"]}
        yield case["case"], case["failed"], advice, rows.get(advice[:2]) if advice else None


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
        failed = None
        if advice:
            recipe, settings, _ = advice
            change = ",".join(filter(None, [recipe, settings and f"set:{settings}"]))
            changed = record.run(name, change, str(out / f"{name}_{number}+.pickle.gz"), memory_mb)
            failed = changed and (changed["failed"] or "")
        yield f"{name}, {memory_mb} MiB", got["failed"], advice, failed


def is_later(before, after):
    """Says whether a failure is beyond what a change covers that was tried after another failure:
    the failed step and one more, without evaluations.
    """
    is_new = after["phase"].startswith("eval") and not before["phase"].startswith("eval")
    return is_new or after["step"] > before["step"] + 1


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
    helped = later = followed = cases = 0
    for source in sources:
        for case, before, advice, after in source:
            cases += 1
            words = " + ".join(filter(None, advice[:2])) if advice else "none"
            result = "not run" if advice else ""
            if after is not None:
                followed += 1
                result = "goes through"
            if after:
                result = f"FAILS in {after['phase']} {after['step']}"
                if advice[2] == "step" and is_later(before, after):
                    later += 1
                    result += ", later than what it covers"
            helped += after == ""
            place = f"{before['phase']} {before['step']}"
            print(f"{case:20} {place:12} {words:60} {result}", flush=True)
    print(f"{helped} of {followed} go through, {later} fail later; {cases} failures")
    sys.exit(1 if (helped + later) * 100 < DEMAND * followed else 0)


if __name__ == "__main__":
    main()
