"""Objects of types that tell the collector odd things (broken.c), alive beside busy threads.

The first argument is the folder of the built module. Prints a line of JSON for each type.
"""

import gc
import json
import os
import resource
import sys
import threading
import time

import torch

from vramscope.recorder import holders

sys.path.insert(0, sys.argv[1])
import broken

stop = threading.Event()


def loads():
    text = json.dumps([{"at": at} for at in range(300)])
    while not stop.is_set():
        json.loads(text)


threads = [threading.Thread(target=loads) for _ in range(3)]
for thread in threads:
    thread.start()
gc.disable()
for name in [name for name in vars(broken) if not name.startswith("_")]:
    kept = [getattr(broken, name)([torch.empty(8 << 20, dtype=torch.uint8, device="cuda")])]
    blocks = holders.live_blocks(torch.cuda.memory_snapshot())
    begin = time.perf_counter()
    told = holders.find(torch, blocks, seconds=3)
    seconds = time.perf_counter() - begin
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    one = {"type": name, "seconds": seconds, "complete": told["complete"], "resident": grown}
    one["linked"] = any("link" in block for block in told["blocks"])
    print(json.dumps(one), flush=True)
    del kept
stop.set()
for thread in threads:
    thread.join()
sys.stdout.flush()
os._exit(0)
