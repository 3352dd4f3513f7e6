"""Records a trainer and an engine that share a GPU, over the stand-in (test_data/one_gpu).

    python one_gpu.py trainer trainer.pickle & python one_gpu.py engine engine.pickle; wait

The engine gives its cache back while the trainer works. The stand-in's processes do not share
capacity: only the sums count.
"""

import os
import pickle
import sys
import time

import torch

GIB = 1 << 30


def allocate(gib):
    return torch.empty(gib * GIB, dtype=torch.uint8, device="cuda")


def train():
    for _ in range(4):
        weights = allocate(2)
        time.sleep(0.2)
        activations = allocate(3)
        time.sleep(0.2)
        del weights, activations


def serve():
    weights = allocate(4)
    time.sleep(0.3)
    cache = allocate(20)
    time.sleep(0.2)
    del cache
    torch.cuda.empty_cache()
    time.sleep(0.6)
    cache = allocate(20)
    time.sleep(0.2)
    del weights, cache


def main(who, out):
    torch.cuda.memory._record_memory_history(max_entries=100_000, stacks="python")
    train() if who == "trainer" else serve()
    torch.empty(1, device="cuda")
    snapshot = torch.cuda.memory._snapshot()
    rows = [event for trace in snapshot["device_traces"] for event in trace]
    rows += [block for segment in snapshot["segments"] for block in segment["blocks"]]
    for row in [*rows, *snapshot["segments"]]:
        for frame in row.get("frames", ()):
            frame["filename"] = "/train/" + os.path.basename(frame["filename"])
    with open(out, "wb") as file:
        pickle.dump(snapshot, file)


main(*sys.argv[1:])
