"""Starts a program as a dry run over the prototype's core: dry_launch.py PROGRAM ARGUMENT...

``VRAMSCOPE_DRY_OUT`` names the folder with the core and the shims. ``DRY_VALUES`` is ``off``,
``small`` or ``full``, and ``DRY_FACTS`` names the file for the facts.
"""

import atexit
import ctypes
import glob
import json
import os
import pathlib
import runpy
import sys

OUT = os.environ["VRAMSCOPE_DRY_OUT"]
MODE = os.environ.get("DRY_VALUES", "small")
#: The addresses of the prototype's first device, and those that it reserves.
RANGES = [(0x760000000000, 0x768000000000), (0x600000000000, 0x680000000000)]


class Core:
    """The prototype's core under the names of the product's."""

    def __init__(self, library):
        library.fk_next.argtypes = [ctypes.c_uint64]
        self.dry_next = library.fk_next
        self.dry_next_clear = library.fk_next_clear

    def dry_ranges(self, pairs, _):
        for at, (first, end) in enumerate(RANGES):
            pairs[2 * at], pairs[2 * at + 1] = first, end
        return len(RANGES)


if MODE != "off":
    os.environ["FAKECUDA_VALUES"] = "1"
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
os.environ.setdefault("TRITON_LIBCUDA_PATH", OUT + "/shims")
library = ctypes.CDLL(OUT + "/vscore.so", mode=ctypes.RTLD_GLOBAL)
for path in sorted(glob.glob(OUT + "/shims/*[0-9]")):
    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
sys.path.append(str(pathlib.Path(__file__).parents[2]))
if MODE != "off":
    import torch  # noqa: F401

    from vramscope.dry import values

    started = values.start(Core(library), is_full=MODE == "full")

    def tell():
        pathlib.Path(os.environ["DRY_FACTS"]).write_text(json.dumps(started.facts()))

    if "DRY_FACTS" in os.environ:
        atexit.register(tell)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
