#!/usr/bin/env python3
"""What it costs to find who holds memory, by the objects of the process.

usage: holders.py OBJECTS...

Run it with the Python of a PyTorch with CUDA, or of one over the stand-in (scripts/standin).
PYTHONPATH must name a folder with the built package. For each number a process of its own makes so
many objects (records in lists and dicts) and 200 blocks that a dict holds. It prints the objects
that the walk met, its seconds of the processor, the growth of the process's memory, and how many
holders it found.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time


class Record:
    def __init__(self, at: int) -> None:
        self.at = at
        self.tags = [at]


def measure(objects: int) -> dict[str, object]:
    """One walk."""
    import torch

    from vramscope.recorder import holders

    # A record, its list, and a dict of ten records.
    data = [{at: Record(at) for at in range(10)} for _ in range(objects // 21)]
    kept = {f"block {at}": torch.empty(1 << 20, device="cuda") for at in range(200)}
    blocks = holders.live_blocks(torch.cuda.memory_snapshot())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    told = holders.find(torch, blocks, seconds=600.0)
    seconds = time.process_time() - begin
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = sum("link" in one for one in told["blocks"])
    limited = holders.find(torch, blocks)
    return {
        "objects": told["objects"],
        "cpu_seconds": round(seconds, 2),
        "grown_mib": grown >> 10,
        "found": f"{found} of {len(kept)}",
        "found_in_2_s": sum("link" in one for one in limited["blocks"]),
        "bytes": len(json.dumps(told)),
        "data": len(data),
    }


def main() -> None:
    if sys.argv[1] == "--one":
        print(json.dumps(measure(int(sys.argv[2]))))
        return
    for objects in sys.argv[1:]:
        command = [sys.executable, __file__, "--one", objects]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(done.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
