"""Records pinned host memory over the stand-in, under the allocator settings of the environment.

    PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:0 python pinned.py OUT

The program stages batches whose length changes, and small ones that repeat. It writes OUT.pickle.gz
and prints what PyTorch's own counters say, for test_data/recorded/pinned/expected.json.
"""

import gzip
import json
import os
import pickle
import random
import sys

import torch


def pin(size):
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def stage(size):
    host = pin(size)
    return host, host.to("cuda", non_blocking=True)


def step(size):
    batch = stage(size)
    mask = stage(size // 3)
    labels = [stage(3_000_000), stage(64_000)]
    del batch, mask, labels


def main(out):
    torch.cuda.init()
    memory = torch.cuda.memory
    memory._record_memory_history(
        max_entries=100_000, record_pinned_host_memory=True, stacks="python"
    )
    random.seed(1)
    warm = [pin(20_000_000) for _ in range(3)]
    del warm
    kept = [pin(5_000_000), pin(1 << 20), pin(1000)]
    size = 1_000_000
    for index in range(30):
        size = int(size * 1.12) + random.randrange(1000)
        step(size)
        if index == 14:
            torch._C._host_emptyCache()
    for _ in range(10):
        step(random.randrange(2_000_000, size))
    torch.cuda.synchronize()
    snapshot = memory._snapshot()
    stats = torch.cuda.host_memory_stats()
    # The file tells of pinned memory alone, and of no folder of this machine.
    snapshot["segments"], snapshot["device_traces"] = [], []
    for row in [*snapshot["host_traces"], *(s["blocks"][0] for s in snapshot["host_segments"])]:
        for frame in row.get("frames", ()):
            frame["filename"] = "/train/" + os.path.basename(frame["filename"])
    data = gzip.compress(pickle.dumps(snapshot), mtime=0)
    with open(out + ".pickle.gz", "wb") as file:
        file.write(data)
    keys = ["allocated_bytes.peak", "allocated_bytes.current", "num_host_alloc", "num_host_free"]
    settings = snapshot["allocator_settings"]
    print(
        json.dumps(
            {
                "max_round_threshold": settings["max_round_threshold"],
                "max_cached_size": settings["max_cached_size"],
                **{key: stats[key] for key in keys},
            }
        )
    )
    del kept


main(*sys.argv[1:])
