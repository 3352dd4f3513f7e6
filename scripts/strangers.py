"""Records the plain scripts of `test_data/strangers`, and judges the first screen of each.

    python scripts/strangers.py FOLDER [NAME ...]

FOLDER/ROUND/NAME gets the recording and `answer.txt`. `truth.json` beside the scripts says what is
so. An answer is right if its first eight lines name the line and the cause, without quoted source,
if it names who holds the memory, has a fix where memory ran out, and accuses nothing else. Run it
with a Python that has PyTorch for CUDA and vramscope, over the stand-in driver of scripts/standin.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parent.parent / "test_data" / "strangers"
#: A source line with its number, or the marks below it.
QUOTED = re.compile(r"^\s*\d*\s*\|")
FIRST = 8


def has(pattern: str, lines: list[str]) -> bool:
    return re.search(pattern, "\n".join(lines), re.MULTILINE | re.DOTALL) is not None


def answer(script: Path, folder: Path, capacity: int) -> list[str]:
    """The lines of the answer about a recording of the script."""
    folder.mkdir(parents=True)
    shutil.copy(script, folder)
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "FAKECUDA_CAPACITY_MB": str(capacity),
    }
    vramscope = [sys.executable, "-m", "vramscope"]
    # A script that runs out of memory ends with an error, and has its recording.
    record = [*vramscope, "record", "-o", "run", script.name]
    subprocess.run(record, check=False, cwd=folder, env=environment, capture_output=True)
    diagnose = [*vramscope, "diagnose", "run"]
    ended = subprocess.run(
        diagnose, check=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    (folder / "answer.txt").write_text(ended.stdout)
    return ended.stdout.splitlines()


def faults(case: dict, lines: list[str]) -> list[str]:
    """What is wrong with an answer."""
    own = [line for line in lines if not QUOTED.match(line)]
    holder, wrong = case["holder_regex"], case["must_not_regex"]
    checks = [
        ("an accusation that is not so", wrong and has(wrong, own)),
        ("no line or no cause at first sight", not has(case["want_regex"], own[:FIRST])),
        ("no holder", holder and not has(holder, own)),
        ("no fix", case["ends"] == "oom" and not has("^fix", lines)),
    ]
    return [words for words, is_so in checks if is_so]


def main() -> None:
    out, *names = sys.argv[1:]
    right = asked = 0
    for truth in sorted(SCRIPTS.glob("*/truth.json")):
        for case in json.loads(truth.read_text()):
            name, group = case["case"], truth.parent.name
            if names and name not in names:
                continue
            folder = Path(out).absolute() / group / name
            script = truth.parent / name / "script.py"
            found = faults(case, answer(script, folder, case["capacity_mb"]))
            asked, right = asked + 1, right + (not found)
            print(f"{group} {name:24} {', '.join(found) or 'right'}", flush=True)
    print(f"{right} of {asked} right")


if __name__ == "__main__":
    main()
