"""Records the program of each public report here, and with the cure of its thread.

    python scripts/reports/record.py FOLDER [NAME ...]

FOLDER/NAME/before and FOLDER/NAME/cured get the recordings. Each program names its source, its
truth and its cure, and in `# CAP=` the MiB of its GPU. Run it with a Python that has PyTorch for
CUDA and vramscope, over the stand-in driver of scripts/standin.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
out, *names = sys.argv[1:]
for name in names or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "record"):
    program = HERE / f"{name}.py"
    capacity = re.search(r"^# CAP=(\d+)", program.read_text(), re.MULTILINE)[1]
    for cure in ("", "1"):
        folder = Path(out) / name / ("cured" if cure else "before")
        folder.mkdir(parents=True, exist_ok=True)
        environment = {"CURE": cure, "OUT": str(folder), "FAKECUDA_CAPACITY_MB": capacity}
        # A program that runs out of memory ends with an error, and has its recording.
        subprocess.run([sys.executable, program], check=False, env={**os.environ, **environment})
