#!/usr/bin/env python3
"""Runs random programs by PyTorch's caching allocator, for a comparison with the model.

allocator_differential.py --python PYTHON --driver FOLDER --out FOLDER [--programs N] [--seed N]

PYTHON has PyTorch and a CUDA driver that counts memory and does no work. FOLDER has the driver's
libraries; its libcuda.so.1 exports fk_set_lag(n), which says how many queries of an event recorded
from now on find it not ready. The environment variable FAKECUDA_CAPACITY_MB is the device's size,
of which the driver takes 500 MiB. A process has one random setting and runs many programs, so that
the start of PyTorch is paid once.

Each process writes one file to --out. Then
`VRAMSCOPE_DIFFERENTIAL=FOLDER cargo test -p vramscope-allocator --test differential` replays the
files with the model. A line of a file is one of:

settings NAME=VALUE...            of the allocator and the device
a ID BYTES STREAM POOL            a request
o ID BYTES STREAM POOL            a request that failed
f ID                              a free
p ID                              a free that waits for a stream
c ID                              a stream is done, and the free is complete
e                                 empty_cache
r POOL                            the end of a torch.cuda.MemPool
s ACTION ADDRESS BYTES STREAM     what the operation before did with segments
= RESERVED PEAK ACTIVE PEAK REQUESTED RETRIES OOMS
"""

import argparse
import collections
import ctypes
import os
import random
import subprocess
import sys

MIB = 1 << 20
NEVER = 1 << 30
PER_PROCESS = 25


def sizes(rng, settings):
    """A size of a request: small, large, or at a limit of the allocator's rules."""
    at = rng.choice([512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, settings["max_split"] or 32 * MIB])
    kind = rng.random()
    if kind < 0.3:
        return rng.randint(1, MIB)
    if kind < 0.55:
        return rng.randint(MIB + 1, 12 * MIB)
    if kind < 0.75:
        return rng.randint(10 * MIB, 90 * MIB)
    if kind < 0.8:
        return rng.randint(64 * MIB, 400 * MIB)
    return max(1, at + rng.choice([-512, -1, 0, 1, 512, 513, MIB, -MIB]))


class Runner:
    """Runs programs, and writes what the model needs."""

    def __init__(self, torch, rng, settings, out):
        self.torch, self.rng, self.settings, self.out = torch, rng, settings, out
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(3)]
        handles = [s.cuda_stream for s in self.streams]
        self.numbers = {handle: i for i, handle in enumerate(sorted(handles))}
        self.live = {}
        self.pools = {}
        self.next_id = self.next_pool = 0
        self.log = []
        # Per stream, the blocks whose frees wait for it, in order. Blocks of a private pool are
        # synchronized by themselves at the end of the pool.
        self.waiting = collections.defaultdict(list)
        self.missing = collections.Counter()
        # PyTorch 2.9 counts the mappings of an expandable private pool wrongly, and stops
        # when it returns them.
        self.may_end_pools = not settings["expandable"]

    def record(self):
        self.torch.cuda.memory._record_memory_history(None)
        self.torch.cuda.memory._record_memory_history(max_entries=1000000, context=None)

    def complete_ready(self):
        """What process_events completes: from the front of each stream's queue, what is ready."""
        for queue in self.waiting.values():
            while queue and queue[0][1]:
                self.done(queue.pop(0)[0])

    def done(self, block):
        self.missing[block] -= 1
        if self.missing[block] == 0:
            self.log.append(("c", block))

    def allocate(self):
        rng, torch = self.rng, self.torch
        stream = rng.choice(self.streams) if rng.random() < 0.4 else self.streams[0]
        pool = rng.choice([0, 0, 0, *self.pools]) if self.pools else 0
        size = sizes(rng, self.settings)
        block, self.next_id = self.next_id, self.next_id + 1
        if pool == 0:
            self.complete_ready()
        tensor = None
        try:
            with torch.cuda.stream(stream):
                if pool:
                    with torch.cuda.use_mem_pool(self.pools[pool]):
                        tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
                else:
                    tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
        kind = "o" if tensor is None else "a"
        self.log.append((kind, block, size, self.numbers[stream.cuda_stream], pool))
        stats = torch.cuda.memory_stats_as_nested_dict()
        if stats["num_alloc_retries"] != self.retries:
            self.retries = stats["num_alloc_retries"]
            self.forget_waiting()
        self.synchronize(stats)
        if tensor is not None:
            self.live[block] = (tensor, stream, pool)

    def synchronize(self, stats):
        """To return memory, the driver waits for all streams. No free is complete by that alone."""
        if stats["num_device_free"] != self.returned:
            self.returned = stats["num_device_free"]
            for queue in self.waiting.values():
                queue[:] = [(block, True, pool) for block, _, pool in queue]

    def forget_waiting(self, pool=None):
        """A flush completes all frees, or those of one pool."""
        for queue in self.waiting.values():
            queue[:] = [w for w in queue if pool is not None and w[2] != pool]

    def free(self, block):
        tensor, own, pool = self.live.pop(block)
        others = [s for s in self.streams if s != own]
        count = self.rng.choice([1, 1, 2]) if self.rng.random() < 0.2 else 0
        used = self.rng.sample(others, count)
        is_ready = self.rng.random() < 0.6
        self.driver.fk_set_lag(0 if is_ready else NEVER)
        for stream in used:
            tensor.record_stream(stream)
            self.waiting[stream.cuda_stream].append((block, is_ready, pool))
        self.missing[block] = len(used)
        self.log.append(("p" if used else "f", block))
        del tensor

    def mark(self, *operation):
        """Says where the events of an operation end that neither allocates nor frees."""
        self.log.append(operation)
        self.synchronize(self.torch.cuda.memory_stats_as_nested_dict())
        self.torch._C._cuda_memorySnapshot(None)

    def end_pool(self, pool):
        del self.pools[pool]
        self.forget_waiting(pool)
        self.mark("r", pool)

    def empty_cache(self):
        self.torch.cuda.empty_cache()
        self.forget_waiting()
        self.mark("e")

    def program(self):
        self.record()
        stats = self.torch.cuda.memory_stats_as_nested_dict()
        self.retries, self.returned = stats["num_alloc_retries"], stats["num_device_free"]
        keep = self.rng.choice([3, 10, 30])
        for _ in range(self.rng.randint(20, 250)):
            kind = self.rng.random()
            if kind < 0.01:
                self.empty_cache()
            elif kind < 0.03 and len(self.pools) < 2 and self.settings["pools"]:
                self.next_pool += 1
                self.pools[self.next_pool] = self.torch.cuda.MemPool()
            elif kind < 0.045 and self.pools and self.may_end_pools:
                self.end_pool(self.rng.choice(list(self.pools)))
            elif self.live and self.rng.random() * 2 * keep < len(self.live):
                self.free(self.rng.choice(list(self.live)))
            else:
                self.allocate()
        for block in list(self.live):
            self.free(block)
        for pool in list(self.pools) if self.may_end_pools else []:
            self.end_pool(pool)
        self.empty_cache()
        self.write()

    def write(self):
        """Writes each operation with the events that it caused."""
        trace = self.torch.cuda.memory._snapshot()["device_traces"][0]
        events = [e for e in trace if e["action"] not in ("free_completed",)]
        last = {"a": "alloc", "o": "oom", "f": "free_requested", "p": "free_requested"}
        at = 0
        for operation in self.log:
            print(*operation, file=self.out)
            if operation[0] == "c":
                continue
            end = last.get(operation[0], "snapshot")
            while events[at]["action"] != end:
                event = events[at]
                if not event["action"].startswith("segment_"):
                    raise SystemExit(f"{event} in {operation}")
                stream = self.numbers[event["stream"]]
                action = event["action"][len("segment_") :]
                print("s", action, event["addr"], event["size"], stream, file=self.out)
                at += 1
            at += 1
        self.log.clear()
        s = self.torch.cuda.memory_stats()
        names = "reserved_bytes.all.current reserved_bytes.all.peak active_bytes.all.current"
        names += " active_bytes.all.peak requested_bytes.all.current num_alloc_retries num_ooms"
        print("=", *(s[name] for name in names.split()), file=self.out)


def child(seed, programs, settings, path):
    import torch

    torch.empty(0, device="cuda")
    allowed = "none"
    if settings["fraction"]:
        torch.cuda.set_per_process_memory_fraction(settings["fraction"])
        allowed = int(settings["fraction"] * (settings["capacity"] << 20))
    with open(path, "w") as out:
        capacity = settings["capacity"] << 20
        values = {k: v for k, v in settings.items() if k not in ("pools", "capacity", "fraction")}
        values.update(total=capacity, available=capacity - 500 * MIB, allowed=allowed)
        print("settings", *(f"{k}={v}" for k, v in values.items()), file=out)
        runner = Runner(torch, random.Random(seed), settings, out)
        for _ in range(programs):
            runner.program()
    # The pools of the module do not end in order.
    os._exit(0)


def random_settings(rng):
    """The settings of a process."""
    has_limit = rng.random() < 0.7
    fraction = rng.choice([0, 0, 0.3, 0.7]) if has_limit else 0
    return {
        "expandable": rng.random() < 0.4,
        "max_split": rng.choice([0, 0, 21, 32, 64]) * MIB,
        "rounding": rng.choice([0, 0, 25, 64]) * MIB,
        "divisions": rng.choice([0, 0, 0, 2, 4, 8]),
        "gc": rng.choice([0.2, 0.5, 0.8]) if fraction else 0,
        "fraction": fraction,
        "capacity": 500 + (rng.choice([300, 600, 1200, 2400]) if has_limit else 40960),
        "pools": rng.random() < 0.5,
    }


def configuration(settings):
    """The value of PYTORCH_CUDA_ALLOC_CONF."""
    parts = [f"expandable_segments:{settings['expandable']}"]
    if settings["max_split"]:
        parts.append(f"max_split_size_mb:{settings['max_split'] // MIB}")
    if settings["rounding"]:
        parts.append(f"max_non_split_rounding_mb:{settings['rounding'] // MIB}")
    if settings["divisions"]:
        parts.append(f"roundup_power2_divisions:{settings['divisions']}")
    if settings["gc"]:
        parts.append(f"garbage_collection_threshold:{settings['gc']}")
    return ",".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    settings = random_settings(random.Random(args.seed))
    if args.child:
        child(args.seed, args.programs, settings, args.child)
        return
    os.makedirs(args.out, exist_ok=True)
    failed = 0
    for number in range(0, args.programs, PER_PROCESS):
        seed = args.seed + number
        settings = random_settings(random.Random(seed))
        environment = dict(
            os.environ,
            LD_LIBRARY_PATH=args.driver,
            CUDA_MODULE_LOADING="LAZY",
            OMP_NUM_THREADS="2",
            PYTORCH_CUDA_ALLOC_CONF=configuration(settings),
            FAKECUDA_CAPACITY_MB=str(settings["capacity"]),
        )
        path = os.path.join(args.out, f"{seed:06}.txt")
        programs = str(min(PER_PROCESS, args.programs - number))
        command = [args.python, __file__, "--child", path, "--seed", str(seed)]
        for name in ("python", "driver", "out"):
            command += [f"--{name}", getattr(args, name)]
        command += ["--programs", programs]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ran.returncode:
            failed += 1
            print(f"seed {seed}, {configuration(settings)}:\n{ran.stderr[-2000:]}", file=sys.stderr)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
