#!/usr/bin/env python3
"""Records private pools over the stand-in, for `test_data/what_if/mempool_*`.

pools.py KIND OUT.pickle.gz, with PyTorch 2.15 (scripts/standin). It prints the peaks that
`memory_stats` has. KIND is one of:

no_split   a torch.cuda.MemPool whose blocks are not split
rounded    a graph's pool; with PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:2
flush      a request of a MemPool returns cached memory; with FAKECUDA_CAPACITY_MB=1000
"""

import gzip
import pickle
import sys

import torch


def block(mib):
    return torch.empty(int(mib * 2**20), dtype=torch.uint8, device="cuda")


def unsplit(keep):
    with torch.cuda.use_mem_pool(torch.cuda.MemPool(no_split=True)):
        keep += [block(mib) for mib in (3, 0.2, 12, 5)]
        freed = block(6)
        del freed
        keep += [block(7), block(2)]


def rounded(keep):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        keep += [graph, block(65), block(3), block(33)]
        graph.capture_end()
    freed = block(70)
    del freed
    keep.append(block(66))


def flush(keep):
    freed = [block(120) for _ in range(3)]
    del freed
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        keep += [block(200), block(150)]
    keep.append(block(5))


def main():
    kind, out = sys.argv[1:]
    torch.cuda.memory._record_memory_history(max_entries=100_000, context=None)
    keep = [block(30)]
    {"no_split": unsplit, "rounded": rounded, "flush": flush}[kind](keep)
    for step in range(6):
        freed = block(10 + step)
        keep.append(block(1 + step))
        del freed
    stats = torch.cuda.memory_stats()
    print(kind, stats["reserved_bytes.all.peak"], stats["active_bytes.all.peak"])
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(pickle.dumps(torch.cuda.memory._snapshot()))


if __name__ == "__main__":
    main()
