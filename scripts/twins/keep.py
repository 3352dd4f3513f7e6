"""Writes a small selection of what `record.py` recorded, for the tests of vramscope.

    python3 scripts/twins/keep.py OUT PROGRAM test_data/recipes

PROGRAM is vramscope. Only unchanged recordings and failures are kept, with the measured peaks of
the changed programs. `within` is the error in percent that a test allows: the least step above the
present error. A larger one, a declined answer and a wrong "fits" say why they are known.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

STEPS = (1, 2, 3, 5)
# What vramscope does not predict well, and why.
KNOWN = {
    ("multitask", "checkpoint:all,chunked_loss:8"): "the last block is computed again too early",
    ("oom_mamba", "checkpoint:all"): "one whole step does not show what each step holds",
    ("oom_vit", "offload_activations"): "the margin for blocks that move in time",
    ("oom_multitask", "batch:0.5"): "the evaluation that fails is not in the recording",
}


def ask(program, file, recipe, memory=None):
    """Returns the scenario of a recipe."""
    command = [program, "what-if", str(file), "--apply", recipe, "--format", "json"]
    if memory:
        command += ["--pytorch-memory", str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["scenarios"][0]


def known(name, recipe):
    """Returns why an answer is known to be wrong."""
    change = recipe.split(":")[0] if recipe.startswith("del") else recipe
    return next((KNOWN[k] for k in ((name, change), ("", change)) if k in KNOWN), "not known yet")


def kept_pair(program, out, pair):
    """Returns what a test needs of a pair."""
    row = {"recipe": pair["recipe"], "active": pair["peak"]["active"]}
    said = ask(program, out / pair["base"], pair["recipe"])
    if said["declined"]:
        return row | {"known": said["declined"]}
    error = 100 * abs(said["active_peak"] / row["active"] - 1)
    row["within"] = next((s for s in STEPS if error <= 0.9 * s), None)
    if row["within"] is None:
        row |= {"within": int(error * 1.1) + 1, "known": known(pair["program"], pair["recipe"])}
    return row


def kept_change(program, out, case, change):
    """Returns what a test needs of a change after a failure."""
    row = {"recipe": change["recipe"], "fits": change["fits"]}
    said = ask(program, out / case["base"], change["recipe"], case["pytorch_memory"])
    if not said["declined"] and said["fits"] not in (None, change["fits"]):
        row["known"] = known(case["case"], change["recipe"])
    return row


def main():
    out, program, target = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    manifest = json.loads((out / "manifest.json").read_text())
    target.mkdir(parents=True, exist_ok=True)
    programs, cases = [], []
    for name in sorted({pair["program"] for pair in manifest["pairs"]}):
        pairs = [p for p in manifest["pairs"] if p["program"] == name and p["recipe"]]
        shutil.copyfile(out / pairs[0]["base"], target / f"{name}.pickle.gz")
        kept = [kept_pair(program, out, p) for p in pairs]
        print(name, len(kept), "changes")
        programs.append({"base": f"{name}.pickle.gz", "pairs": kept})
    for case in manifest["oom"]:
        shutil.copyfile(out / case["base"], target / f"{case['case']}.pickle.gz")
        row = {key: case[key] for key in ("case", "pytorch_memory")}
        changes = [kept_change(program, out, case, c) for c in case["changes"] if c["recipe"]]
        cases.append(row | {"base": f"{case['case']}.pickle.gz", "changes": changes})
    text = json.dumps({"programs": programs, "oom": cases}, indent=1)
    (target / "manifest.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
