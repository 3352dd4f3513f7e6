"""Runs `vramscope fix` on programs that run out of memory, and prints what came of each.

    python scripts/fixes.py FOLDER [NAME ...]

FOLDER gets recordings and `NAME/fix.json`. Run it with a Python that has PyTorch for CUDA,
vramscope and LibCST. It changes nothing: each program runs in a copy.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "test_data" / "ordinary"
MIB = 1 << 20


def fix(case: dict, folder: Path) -> dict:
    """The answer about a program, over a dry run with the memory at which it fails."""
    command = [sys.executable, "-m", "vramscope", "fix", "--format", "json"]
    command += ["--memory", f"{case['memory_mib']}MiB", "-o", str(folder.resolve()), "train.py"]
    ended = subprocess.run(
        [*command, *case["arguments"]],
        cwd=PROGRAMS / case["case"],
        capture_output=True,
        text=True,
        check=False,
    )
    if not ended.stdout:
        raise SystemExit(f"{case['case']}: {ended.stderr}")
    return json.loads(ended.stdout)


def row(name: str, answer: dict) -> str:
    """A line of the table."""
    found = answer["fix"]
    if found is None:
        return f"| {name} | none of {len(answer['tries'])} | | | |"
    predicted, needs = ((found[key] or 0) / MIB for key in ("predicted_bytes", "needs_bytes"))
    change = f"{found['text']}: {'; '.join(found['edits'])}"
    return f"| {name} | {change} | {predicted:,.0f} | {needs:,.0f} | {found['seconds']:.0f} |"


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    print("| program | change | predicted, MiB | dry run, MiB | seconds |\n|---|---|---|---|---|")
    fixed = total = 0
    for case in json.loads((PROGRAMS / "truth.json").read_text()):
        if names and case["case"] not in names:
            continue
        own = folder / case["case"]
        shutil.rmtree(own, ignore_errors=True)
        answer = fix(case, own)
        (own / "fix.json").write_text(json.dumps(answer, indent=1))
        print(row(case["case"], answer), flush=True)
        fixed += answer["fix"] is not None
        total += 1
    print(f"\n{fixed} of {total} run to their end.")


if __name__ == "__main__":
    main()
