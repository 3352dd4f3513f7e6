#!/usr/bin/env python3
"""Runs random programs by PyTorch's caching allocator, for a comparison with the model.

allocator_differential.py --python PYTHON --driver FOLDER --out FOLDER [--programs N] [--seed N]

PYTHON has PyTorch 2.1 or later and a CUDA driver that counts memory and does no work
(scripts/standin). FOLDER has the driver's libraries; libvramscope_dry.so exports
dry_set_event_lag(n), which says how many queries of an event recorded from now on find it not
ready. The environment variable FAKECUDA_CAPACITY_MB is the device's size, of which the driver
takes 500 MiB. A process has one random setting and runs many programs, so that the start of PyTorch
is paid once. Programs use what their release has: private pools of graphs and of
torch.cuda.MemPool, limits, and all settings that decide how much is reserved.

Each process writes one file to --out. Then
`VRAMSCOPE_DIFFERENTIAL=FOLDER cargo test -p vramscope-allocator --test differential` replays the
files with the model. A line of a file is one of:

settings NAME=VALUE...            of the allocator and the device; conf= is the configuration
m POOL KIND                       the pool is not split (no_split), or helps out when memory is
                                  short (use_on_oom)
a ID BYTES STREAM POOL ADDRESS    a request, and the address that serves it
o ID BYTES STREAM POOL            a request that failed
f ID                              a free
p ID                              a free that waits for a stream
c ID                              the streams are done, and the free is complete
e                                 empty_cache
r POOL                            the end of a torch.cuda.MemPool
g POOL                            a graph is reset, and no other uses its pool; 0 if one does
i                                 a capture begins: the allocator completes no frees until its end
x                                 a capture did not begin, for want of memory
k                                 a capture ends
s ACTION ADDRESS BYTES STREAM     what the operation before did with segments
j ID BYTES STREAM POOL            a request that was refused early
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

#: What the releases have: the number after "2.".
HAS_ROUNDING, HAS_POOLS, HAS_GRAPHS = 6, 5, 1
HAS_EXPANDABLE_POOLS, HAS_USE_ON_OOM, HAS_NO_SPLIT, HAS_FRACTION = 9, 9, 10, 10
HAS_LARGE_SEGMENT, HAS_REJECTION = 11, 12
HAS_RESERVE = 15


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


class Graph:
    """A captured graph. Graphs that share a pool count as its users."""

    def __init__(self, torch, pool):
        self.graph, self.pool = torch.cuda.CUDAGraph(), pool


class Runner:
    """Runs programs, and writes what the model needs."""

    def __init__(self, torch, rng, settings, out):
        self.torch, self.rng, self.settings, self.out = torch, rng, settings, out
        self.driver = ctypes.CDLL("libvramscope_dry.so")
        self.streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(3)]
        handles = [s.cuda_stream for s in self.streams]
        self.numbers = {handle: i for i, handle in enumerate(sorted(handles))}
        self.live = {}
        self.pools = {}
        # Requests that were tried again after a flush.
        self.flushed = set()
        self.graphs = []
        self.own_blocks = {}
        self.next_id = self.next_pool = 0
        self.log = []
        # Blocks whose frees wait, by address, and per stream in order, with whether it is done.
        self.waiting = {}
        self.queues = collections.defaultdict(list)
        # Pools and graphs that stay. PyTorch from 2.5 on counts the mappings of an expandable
        # private pool wrongly, and may stop when it returns them. Up to 2.10 it asks pools for help
        # that have ended, too.
        self.lasting = set()
        self.may_reset = not (settings["expandable"] and settings["release"] >= 5)
        # Graphs whose capture did not begin: PyTorch 2.4 stops when one is destroyed.
        self.broken = []
        # Pools that help out when memory is short.
        self.helping = set()

    def record(self):
        self.torch.cuda.memory._record_memory_history(None)
        self.torch.cuda.memory._record_memory_history(max_entries=1000000, context=None)

    def stats(self):
        return self.torch.cuda.memory_stats_as_nested_dict()

    def empty(self, size):
        try:
            return self.torch.empty(size, dtype=self.torch.uint8, device="cuda")
        except self.torch.cuda.OutOfMemoryError:
            return None

    def allocate(self):
        rng, torch = self.rng, self.torch
        stream = rng.choice(self.streams) if rng.random() < 0.4 else self.streams[0]
        pool = rng.choice([0, 0, 0, *self.pools]) if self.pools else 0
        with torch.cuda.stream(stream):
            if pool:
                with torch.cuda.use_mem_pool(self.pools[pool]):
                    self.request(stream, pool)
            else:
                self.request(stream, pool)

    def request(self, stream, pool):
        """One request, by the current stream and pool."""
        size = sizes(self.rng, self.settings)
        block, self.next_id = self.next_id, self.next_id + 1
        tensor = self.empty(size)
        kind = "o" if tensor is None else "a"
        self.log.append((kind, block, size, self.numbers[stream.cuda_stream], pool))
        stats = self.stats()
        if tensor is None and stats["num_ooms"] == self.ooms:
            # A request that is refused early leaves no event.
            self.log[-1] = ("j", *self.log[-1][1:])
        self.ooms = stats["num_ooms"]
        if stats["num_alloc_retries"] != self.retries:
            self.retries = stats["num_alloc_retries"]
            self.flushed.add(block)
        if tensor is not None:
            self.live[block] = (tensor, stream, pool)

    def free(self, block, may_wait=True):
        tensor, own, _ = self.live.pop(block)
        others = [s for s in self.streams if s != own]
        count = self.rng.choice([1, 1, 2]) if may_wait and self.rng.random() < 0.2 else 0
        used = self.rng.sample(others, count)
        is_ready = self.rng.random() < 0.6
        self.driver.dry_set_event_lag(0 if is_ready else NEVER)
        for stream in used:
            tensor.record_stream(stream)
        self.log.append(("p", block, is_ready, used) if used else ("f", block))
        del tensor

    def mark(self, *operation):
        """Says where the events of an operation end that neither allocates nor frees."""
        self.log.append(operation)
        self.torch.cuda.memory._snapshot()

    def new_pool(self):
        self.next_pool += 1
        kinds = {}
        # Of several such pools PyTorch tries the first in the order of a hash table.
        may_help = not self.helping & self.pools.keys()
        if self.settings["release"] >= HAS_USE_ON_OOM and may_help and self.rng.random() < 0.3:
            kinds["use_on_oom"] = True
            self.helping.add(self.next_pool)
        if self.settings["release"] >= HAS_NO_SPLIT and self.rng.random() < 0.3:
            kinds["no_split"] = True
        self.pools[self.next_pool] = self.torch.cuda.MemPool(**kinds)
        self.log += [("m", self.next_pool, kind) for kind in kinds]
        if self.settings["expandable"] or (kinds and self.settings["release"] < HAS_NO_SPLIT):
            self.lasting.add(self.next_pool)
        if kinds.get("use_on_oom"):
            # Before a pool has served a request, PyTorch 2.9 stops when it asks it for help.
            with self.torch.cuda.use_mem_pool(self.pools[self.next_pool]):
                self.request(self.streams[0], self.next_pool)

    def end_pool(self, pool):
        del self.pools[pool]
        self.mark("r", pool)

    def capture(self):
        """Captures a graph with a few requests and frees, in a pool of its own or of another."""
        torch, rng = self.torch, self.rng
        stream = self.streams[1]
        if self.graphs and rng.random() < 0.5:
            pool, shared = (other := rng.choice(self.graphs)).pool, other.graph.pool()
        else:
            self.next_pool += 1
            pool, shared = self.next_pool, None
        one = Graph(torch, pool)
        with torch.cuda.stream(stream):
            try:
                one.graph.capture_begin(*([shared] if shared else []))
            except torch.cuda.OutOfMemoryError:
                self.ooms += 1
                self.broken.append(one.graph)
                self.mark("x")
                return
            self.mark("i")
            own = []
            for _ in range(rng.randint(1, 8)):
                if own and rng.random() < 0.3:
                    block = own.pop(rng.randrange(len(own)))
                    if block in self.live:
                        self.free(block, may_wait=False)
                else:
                    own.append(self.next_id)
                    self.request(stream, pool)
            one.graph.capture_end()
            self.mark("k")
        self.graphs.append(one)

    def reset_graph(self):
        one = self.graphs.pop(self.rng.randrange(len(self.graphs)))
        # Not by reset(): PyTorch 2.1 gives the pool back twice then.
        one.graph = None
        is_last = not any(other.pool == one.pool for other in self.graphs)
        self.mark("g", one.pool if is_last else 0)

    def empty_cache(self):
        self.torch.cuda.empty_cache()
        self.mark("e")

    def program(self):
        self.record()
        stats = self.stats()
        self.retries, self.ooms = stats["num_alloc_retries"], stats["num_ooms"]
        keep = self.rng.choice([3, 10, 30])
        for _ in range(self.rng.randint(20, 250)):
            kind = self.rng.random()
            if kind < 0.01:
                self.empty_cache()
            elif kind < 0.03 and len(self.pools) < 2 and self.settings["pools"]:
                self.new_pool()
            elif kind < 0.045 and (ends := self.pools.keys() - self.lasting):
                self.end_pool(self.rng.choice(sorted(ends)))
            elif kind < 0.065 and len(self.graphs) < 4 and self.settings["graphs"]:
                self.capture()
            elif kind < 0.075 and self.graphs and self.may_reset:
                self.reset_graph()
            elif self.live and self.rng.random() * 2 * keep < len(self.live):
                self.free(self.rng.choice(list(self.live)))
            else:
                self.allocate()
        for block in list(self.live):
            self.free(block)
        for pool in sorted(self.pools.keys() - self.lasting):
            self.end_pool(pool)
        while self.graphs and self.may_reset:
            self.reset_graph()
        self.empty_cache()
        self.write()

    def write(self):
        """Writes each operation with the events that it caused."""
        events = self.torch.cuda.memory._snapshot()["device_traces"][0]
        last = {"a": "alloc", "o": "oom", "f": "free_requested", "p": "free_requested"}
        at = 0
        for operation in self.log:
            kind = operation[0]
            if kind in ("m", "j"):
                print(*operation, file=self.out)
                continue
            end = last.get(kind, "snapshot")
            segments, before, ready = [], [], self.ready()
            while (event := events[at])["action"] != end:
                at += 1
                if event["action"].startswith("segment_"):
                    segments.append(self.segment(event))
                    if event["action"] in ("segment_free", "segment_unmap"):
                        self.synchronize()
                elif event["action"] == "free_completed":
                    before += self.completed(event, operation, ready)
                else:
                    # The state of a random generator, at the first capture and after the last.
                    before += [self.own(event, operation), *segments]
                    segments = []
            at += 1
            if kind == "a":
                operation = (*operation, event["addr"])
            if kind == "p":
                _, block, is_ready, used = operation
                self.waiting[event["addr"]] = block
                for stream in used:
                    self.queues[stream.cuda_stream].append([block, is_ready])
                operation = operation[:2]
            print(*before, " ".join(map(str, operation)), *segments, sep="\n", file=self.out)
        self.log.clear()
        s = self.torch.cuda.memory_stats()
        names = "reserved_bytes.all.current reserved_bytes.all.peak active_bytes.all.current"
        names += " active_bytes.all.peak requested_bytes.all.current num_alloc_retries num_ooms"
        print("=", *(s[name] for name in names.split()), file=self.out)

    def ready(self):
        """What process_events would complete: from the front of each queue, what is done."""
        blocked = set()
        for queue in self.queues.values():
            done = True
            for block, is_done in queue:
                done &= is_done
                if not done:
                    blocked.add(block)
        return set(self.waiting.values()) - blocked

    def synchronize(self):
        """To return memory, the driver waits for all streams."""
        for queue in self.queues.values():
            for entry in queue:
                entry[1] = True

    def completed(self, event, operation, ready):
        """The end of a free that waited. A flush completes all by itself."""
        block = self.waiting.pop(event["addr"], None)
        for queue in self.queues.values():
            queue[:] = [entry for entry in queue if entry[0] != block]
        is_retried = operation[0] in ("a", "o") and operation[1] in self.flushed
        by_flush = operation[0] in ("e", "r") or (is_retried and block not in ready)
        return [] if block is None or by_flush else [f"c {block}"]

    def segment(self, event):
        stream, action = self.numbers[event["stream"]], event["action"][len("segment_") :]
        return f"s {action} {event['addr']} {event['size']} {stream}"

    def own(self, event, operation):
        """A request that PyTorch makes for itself, or its free."""
        if operation[0] not in ("i", "k", "g", "x"):
            before = self.log[: self.log.index(operation)][-5:]
            raise SystemExit(f"{event} in {operation} after {before}")
        if event["action"] == "free_requested":
            return f"f {self.own_blocks.pop(event['addr'])}"
        block, self.next_id = self.next_id, self.next_id + 1
        stream = self.numbers[event["stream"]]
        if event["action"] == "oom":
            return f"o {block} {event['size']} {stream} 0"
        self.own_blocks[event["addr"]] = block
        return f"a {block} {event['size']} {stream} 0 {event['addr']}"


def child(seed, programs, settings, path):
    import torch

    torch.empty(0, device="cuda")
    total = settings["capacity"] << 20
    if settings["fraction"] and not settings["is_in_text"]:
        torch.cuda.set_per_process_memory_fraction(settings["fraction"])
    with open(path, "w") as out:
        values = {"conf": configuration(settings), "release": f"2.{settings['release']}"}
        fraction = settings["fraction"] or "none"
        values.update(total=total, available=total - 500 * MIB, fraction=fraction)
        print("settings", *(f"{k}={v}" for k, v in values.items()), file=out)
        runner = Runner(torch, random.Random(seed), settings, out)
        for _ in range(programs):
            runner.program()
    # The pools of the module do not end in order.
    os._exit(0)


def random_settings(rng, release):
    """The settings of a process."""
    has_limit = rng.random() < 0.7
    fraction = rng.choice([0, 0, 0.3, 0.7]) if has_limit else 0
    settings = {
        "release": release,
        "expandable": rng.random() < 0.4,
        "max_split": rng.choice([0, 0, 21, 32, 64]) * MIB,
        "rounding": rng.choice([0, 0, 25, 64]) * MIB if release >= HAS_ROUNDING else 0,
        "divisions": rng.choice([0, 0, 0, 2, 4, 8]),
        "gc": rng.choice([0.2, 0.5, 0.8]) if fraction else 0,
        "fraction": fraction,
        "capacity": 500 + (rng.choice([300, 600, 1200, 2400]) if has_limit else 40960),
        "pools": rng.random() < 0.5 and release >= HAS_POOLS,
        "graphs": rng.random() < 0.5 and release >= HAS_GRAPHS,
        "large": rng.choice([0, 0, 12, 40]) * MIB if release >= HAS_LARGE_SEGMENT else 0,
        "is_in_text": rng.random() < 0.5 and release >= HAS_FRACTION,
        "rejects": rng.random() < 0.3 and release >= HAS_REJECTION,
        "reserve": rng.choice(["", "", "0.05", "0.5", "1G"]) if release >= HAS_RESERVE else "",
    }
    for name in ("rounding", "max_split"):
        if settings[name] < settings["large"]:
            settings[name] = 0
    if settings["expandable"] and release < HAS_EXPANDABLE_POOLS:
        settings["pools"] = False
    if release < 5 and settings["expandable"]:
        # These releases stop when they collect garbage or return oversize blocks.
        settings["max_split"] = settings["gc"] = 0
    return settings


def configuration(settings):
    """The value of PYTORCH_CUDA_ALLOC_CONF."""
    parts = [f"expandable_segments:{settings['expandable']}"]
    sizes = {"max_split": "max_split_size_mb", "rounding": "max_non_split_rounding_mb"}
    sizes["large"] = "large_segment_size_mb"
    parts += [f"{key}:{settings[name] // MIB}" for name, key in sizes.items() if settings[name]]
    if settings["divisions"]:
        parts.append(f"roundup_power2_divisions:{settings['divisions']}")
    if settings["gc"]:
        parts.append(f"garbage_collection_threshold:{settings['gc']}")
    if settings["fraction"] and settings["is_in_text"]:
        parts.append(f"per_process_memory_fraction:{settings['fraction']}")
    if settings["rejects"]:
        parts.append("throw_on_cudamalloc_oom:True")
    if settings["reserve"]:
        parts.append(f"expandable_segments_reserve:{settings['reserve']}")
    return ",".join(parts)


def release_of(python, environment):
    """The number after `2.` of the release."""
    command = [python, "-c", "import torch; print(torch.__version__)"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(ran.stdout.split(".")[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--release", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        settings = random_settings(random.Random(args.seed), args.release)
        child(args.seed, args.programs, settings, args.child)
        return
    os.makedirs(args.out, exist_ok=True)
    base = dict(os.environ, LD_LIBRARY_PATH=args.driver, CUDA_MODULE_LOADING="LAZY")
    release = release_of(args.python, base)
    failed = 0
    for number in range(0, args.programs, PER_PROCESS):
        seed = args.seed + number
        settings = random_settings(random.Random(seed), release)
        environment = dict(
            base,
            OMP_NUM_THREADS="2",
            PYTORCH_CUDA_ALLOC_CONF=configuration(settings),
            FAKECUDA_CAPACITY_MB=str(settings["capacity"]),
        )
        path = os.path.join(args.out, f"{release:02}-{seed:06}.txt")
        programs = str(min(PER_PROCESS, args.programs - number))
        command = [args.python, __file__, "--child", path, "--seed", str(seed)]
        for name in ("python", "driver", "out"):
            command += [f"--{name}", getattr(args, name)]
        command += ["--programs", programs, "--release", str(release)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ran.returncode:
            failed += 1
            print(f"seed {seed}, {configuration(settings)}:\n{ran.stderr[-2000:]}", file=sys.stderr)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
