"""Records each program here, and with its cure, over a dry run (test_data/causes).

    python scripts/causes/record.py [PROGRAM ...]

Run it with a Python that has PyTorch for CUDA and vramscope.
"""

import gzip
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent.parent / "test_data" / "causes"


def shorten(filename):
    """Returns the path of a source file without folders of this machine."""
    _, package, rest = filename.rpartition("/site-packages/")
    if package:
        return "/venv/lib/python3.11/site-packages/" + rest
    return "/train/" + os.path.basename(filename) if filename.startswith("/") else filename


def keep(recording, out):
    """Writes a recording with short paths."""
    snapshot = pickle.loads(recording.read_bytes())
    rows = [event for trace in snapshot["device_traces"] for event in trace]
    rows += [block for segment in snapshot["segments"] for block in segment["blocks"]]
    frames = [frame for row in [*rows, *snapshot["segments"]] for frame in row.get("frames", ())]
    # Stacks share the objects of their frames.
    for frame in {id(frame): frame for frame in frames}.values():
        frame["filename"] = shorten(frame["filename"])
    with gzip.GzipFile(out, "wb", 9, mtime=0) as file:
        file.write(pickle.dumps(snapshot))


def record(name):
    """Records a program as it is, and cured."""
    for cure in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "vramscope", "dry-run", "--gpu", "A10"]
            command += ["-o", folder, str(HERE / f"{name}.py")]
            environment = {**os.environ, **({"CURE": "1"} if cure else {})}
            subprocess.run(command, check=True, env=environment)
            (recording,) = Path(folder).rglob("rank0_memory_snapshot.pickle")
            keep(recording, OUT / f"{name}{'_cured' if cure else ''}.pickle.gz")


OUT.mkdir(exist_ok=True)
for program in sys.argv[1:] or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "record"):
    record(program)
