"""Snapshots of Ascend NPUs: a simulation of torch_npu's allocators, with what they must read as.

It follows `torch_npu/csrc/core/npu/NPUCachingAllocator.cpp` and `NPUWorkspaceAllocator.cpp`
(torch_npu 2.14) function by function, and counts every total itself. It knows nothing of how
vramscope reads a file. No file was recorded on a device.
"""

import bisect
import gzip
import pickle
import random

MIB = 1 << 20
GIB = 1 << 30
MIN_BLOCK, SMALL, SMALL_BUFFER, LARGE_BUFFER = 512, MIB, 2 * MIB, 20 * MIB
MIN_LARGE, ROUND_LARGE = 10 * MIB, 2 * MIB
BANDS = ("requested", "active", "allocated", "reserved")


def up(size, step):
    return -(-size // step) * step


class Block:
    def __init__(self, pool, stream, address, size, expandable=None):
        self.pool, self.stream, self.address, self.size = pool, stream, address, size
        self.expandable, self.mapped = expandable, True
        self.allocated, self.events, self.requested = False, 0, 0
        self.prev = self.next = None
        self.frames, self.segment_frames = None, None

    def key(self):
        return (self.stream, self.size, self.address)

    def is_free(self):
        return not self.allocated and self.events == 0


class Pool:
    def __init__(self, small, ident=(0, 0)):
        self.small, self.ident = small, ident
        self.free, self.unmapped = [], []

    def insert(self, block):
        bisect.insort(self.free, block, key=Block.key)

    def erase(self, block):
        self.free.remove(block)


class Expandable:
    """The address range of an expandable segment, and its page."""

    def __init__(self, start, size, page):
        self.start, self.size, self.page = start, size, page


class OutOfMemory(Exception):
    pass


class Npu:
    """One device."""

    def __init__(self, device=0, padding=32, page_1g=False, align=16 << 10, total=64 * GIB):
        self.device, self.padding, self.page_1g, self.align = device, padding, page_1g, align
        self.total, self.limit = total, total
        self.expandable = False
        self.pools = {(0, 0): (Pool(False), Pool(True))}
        self.active, self.pending = [], []
        self.next_address = 0x12C0_0000_0000 + device * (1 << 40)
        self.reserved = 0
        self.recording, self.trace, self.curve = False, [], []
        self.workspaces = []

    # What is recorded

    def totals(self):
        requested = sum(b.requested for b in self.active)
        active = sum(b.size for b in self.active)
        allocated = sum(b.size for b in self.active if b.allocated)
        return (requested, active, allocated, self.reserved)

    def start(self):
        self.recording = True
        self.curve.append(self.totals())

    def record(self, action, address, size, stream, frames):
        if not self.recording:
            return
        at = "device_free" if action == "oom" else "addr"
        entry = {"action": action, at: address, "size": size, "stream": stream}
        if frames is not None:
            entry["frames"] = frames
        self.trace.append(entry)
        self.curve.append(self.totals())

    # malloc

    def round(self, size):
        return max(MIN_BLOCK, up(size + self.padding, MIN_BLOCK))

    def segment_size(self, size):
        if size <= SMALL:
            return SMALL_BUFFER
        return LARGE_BUFFER if size < MIN_LARGE else up(size, ROUND_LARGE)

    def pool_of(self, size, pool):
        large, small = self.pools.setdefault(pool, (Pool(False, pool), Pool(True, pool)))
        return small if size <= SMALL else large

    def malloc(self, requested, frames, stream=0, pool=(0, 0)):
        self.process_events()
        size = self.round(requested)
        pool = self.pool_of(size, pool)
        is_1g = self.page_1g and not pool.small
        segment = up(size, GIB) if is_1g else self.segment_size(size)
        block = self.get_free(pool, size, stream) or self.alloc(pool, size, segment, stream, frames)
        if block is None:
            self.release_cached(frames)
            block = self.alloc(pool, size, segment, stream, frames)
        if block is None:
            self.record("oom", self.limit - self.reserved, size, stream, frames)
            raise OutOfMemory
        block = self.aligned(block, size)
        rest = block.size - size
        if rest >= MIN_BLOCK if pool.small or self.expandable else rest > SMALL:
            block = self.split(block, size)
        block.allocated, block.requested, block.frames = True, requested, frames
        self.active.append(block)
        self.record("alloc", block.address, requested, stream, frames)
        return block

    def get_free(self, pool, size, stream):
        at = bisect.bisect_left(pool.free, (stream, size, 0), key=Block.key)
        of_stream = [b for b in pool.free[at:] if b.stream == stream]
        if not self.expandable:
            of_stream = [b for b in of_stream if not b.expandable]
        if not of_stream:
            return None

        def can_grow_to(b):
            return b.size + (b.next.size if b.next and not b.next.mapped else 0)

        best, others = of_stream[0], of_stream[1:]
        while best.expandable and others and can_grow_to(others[0]) < can_grow_to(best):
            best = others.pop(0)
        pool.erase(best)
        return best

    def aligned(self, block, size):
        before = -block.address % self.align if self.align else 0
        if size < ROUND_LARGE or not self.expandable or not before:
            return block
        if before + size > block.size:
            return block
        piece = self.split(block, before)
        piece.pool.insert(piece)
        piece.pool.erase(piece.next)
        return piece.next

    def split(self, block, size):
        """Cuts the first bytes off a block that is in no pool. The rest is free."""
        first = Block(block.pool, block.stream, block.address, size, block.expandable)
        first.segment_frames = block.segment_frames
        first.prev, first.next = block.prev, block
        if first.prev:
            first.prev.next = first
        block.prev = first
        block.address += size
        block.size -= size
        block.pool.insert(block)
        return first

    # The driver

    def reserve(self, size):
        start = up(self.next_address, 2 * MIB)
        self.next_address = start + size + 4 * MIB
        return start

    def alloc(self, pool, size, segment, stream, frames):
        if self.expandable:
            return self.grow(pool, size, stream, frames)
        if self.reserved + segment > self.limit:
            return None
        block = Block(pool, stream, self.reserve(segment), segment)
        block.segment_frames = frames
        self.reserved += segment
        self.record("segment_alloc", block.address, segment, stream, frames)
        return block

    def grow(self, pool, size, stream, frames):
        block = self.find_room(pool, size, stream)
        if not block.mapped and not self.map(block, min(block.size, size), frames):
            return None
        while block.size < size:
            following = block.next
            if not self.map(following, min(size - block.size, following.size), frames):
                return None
            block = following
        pool.erase(block)
        return block

    def find_room(self, pool, size, stream):
        for block in sorted(pool.unmapped, key=lambda b: b.address):
            if block.stream != stream:
                continue
            if block.prev and block.prev.is_free():
                block = block.prev
            room, at = 0, block
            while room < size and at and at.is_free():
                room += at.size
                at = at.next
            if room >= size:
                return block
        page = SMALL_BUFFER if pool.small else GIB if self.page_1g else LARGE_BUFFER
        room = up(self.total * 9 // 8, page)
        start = up(self.reserve(room + page), page)
        block = Block(pool, stream, start, room, Expandable(start, room, page))
        block.mapped = False
        pool.unmapped.append(block)
        return block

    def map(self, block, size, frames):
        size = up(size, block.expandable.page)
        if self.reserved + size > self.limit:
            return False
        pool = block.pool
        pool.unmapped.remove(block)
        block.mapped = True
        if size < block.size:
            rest = Block(pool, block.stream, block.address + size, block.size - size)
            rest.expandable, rest.mapped = block.expandable, False
            rest.prev, rest.next = block, block.next
            if rest.next:
                rest.next.prev = rest
            block.next, block.size = rest, size
            pool.unmapped.append(rest)
        address = block.address
        self.merge(block, block.prev)
        self.merge(block, block.next)
        pool.insert(block)
        self.reserved += size
        self.record("segment_map", address, size, block.stream, frames)
        if not block.prev:
            block.segment_frames = block.segment_frames or frames
        return True

    # free

    def free(self, block, frames=None, waits=False):
        block.allocated = False
        block.events = int(waits)
        frames = frames or block.frames
        self.record("free_requested", block.address, block.requested, block.stream, frames)
        if waits:
            self.pending.append([block, 3])
        else:
            self.complete(block, frames)

    def process_events(self):
        for entry in self.pending:
            entry[1] -= 1
        while self.pending and self.pending[0][1] <= 0:
            block, _ = self.pending.pop(0)
            block.events = 0
            self.complete(block, block.frames)

    def complete(self, block, frames):
        self.active.remove(block)
        address, requested, stream = block.address, block.requested, block.stream
        self.merge(block, block.prev)
        self.merge(block, block.next)
        block.pool.insert(block)
        self.record("free_completed", address, requested, stream, frames)

    def merge(self, block, other):
        if not other or not other.is_free() or block.mapped != other.mapped:
            return
        (other.pool.free if other.mapped else other.pool.unmapped).remove(other)
        if block.prev is other:
            block.address, block.prev = other.address, other.prev
            block.segment_frames = other.segment_frames
            if block.prev:
                block.prev.next = block
        else:
            block.next = other.next
            if block.next:
                block.next.prev = block
        block.size += other.size

    def release_cached(self, frames=None):
        while self.pending:
            block, _ = self.pending.pop(0)
            block.events = 0
            self.complete(block, block.frames)
        for pools in list(self.pools.values()):
            for pool in pools:
                to_unmap = [b for b in pool.free if b.expandable]
                for block in [b for b in pool.free if not b.expandable]:
                    if not block.prev and not block.next:
                        pool.erase(block)
                        self.reserved -= block.size
                        self.record("segment_free", block.address, block.size, block.stream, frames)
                for block in to_unmap:
                    self.unmap(block, frames)

    def unmap(self, block, frames):
        pool, page = block.pool, block.expandable.page
        start = up(block.address, page)
        end = (block.address + block.size) // page * page
        if start >= end:
            return
        pool.erase(block)
        end_of_block = block.address + block.size
        if start > block.address:
            before = Block(pool, block.stream, block.address, start - block.address)
            before.expandable, before.segment_frames = block.expandable, block.segment_frames
            before.prev, before.next = block.prev, block
            if before.prev:
                before.prev.next = before
            block.prev = before
            pool.insert(before)
        if end < end_of_block:
            after = Block(pool, block.stream, end, end_of_block - end)
            after.expandable = block.expandable
            after.prev, after.next = block, block.next
            if after.next:
                after.next.prev = after
            block.next = after
            pool.insert(after)
        block.address, block.size, block.mapped = start, end - start, False
        self.merge(block, block.prev)
        self.merge(block, block.next)
        pool.unmapped.append(block)
        self.reserved -= end - start
        self.record("segment_unmap", start, end - start, block.stream, frames)

    # The dump

    def workspace(self, requested, frames, stream=0):
        size = up(requested + 32, ROUND_LARGE)
        self.workspaces.append((self.reserve(size), size, requested, stream, frames))

    def blocks(self):
        free = [b for pools in self.pools.values() for pool in pools for b in pool.free]
        return free + self.active

    def segments(self):
        out = []
        for head in self.blocks():
            if head.prev and head.prev.mapped:
                continue
            chain, block = [], head
            while block and block.mapped:
                chain.append(block)
                block = block.next
            out.append(
                self.segment(
                    head.address,
                    head.stream,
                    not head.pool.small,
                    bool(head.expandable),
                    head.pool.ident,
                    head.segment_frames,
                    [(b.size, b.requested, b.allocated, not b.is_free(), b.frames) for b in chain],
                )
            )
        out.sort(key=lambda segment: segment["address"])
        for address, size, requested, stream, frames in self.workspaces:
            # The allocator never sets `allocated`.
            blocks = [(size, requested, False, False, frames)]
            out.append(self.segment(address, stream, True, False, (0, 0), frames, blocks))
        return out

    def segment(self, address, stream, is_large, expandable, pool, frames, blocks):
        rows, at = [], address
        for size, requested, allocated, active, of in blocks:
            state = "active_pending_free" if active else "inactive"
            rows.append(
                {
                    "address": at,
                    "size": size,
                    "requested_size": requested,
                    "state": "active_allocated" if allocated else state,
                    "frames": of if active and of is not None else [],
                }
            )
            at += size
        return {
            "device": self.device,
            "address": address,
            "total_size": at - address,
            "allocated_size": sum(b[0] for b in blocks if b[2]),
            "active_size": sum(b[0] for b in blocks if b[3]),
            "requested_size": sum(b[1] for b in blocks if b[3]),
            "stream": stream,
            "segment_pool_id": pool,
            "segment_type": "large" if is_large else "small",
            "is_expandable": expandable,
            "frames": frames or [],
            "blocks": rows,
        }

    def made_up(self):
        for address, size, _, stream, frames in self.workspaces:
            for action in ("workspace_snapshot", "segment_alloc", "alloc"):
                entry = {"action": action, "addr": address, "size": size, "stream": stream}
                yield entry | ({"frames": frames} if frames is not None else {})

    def expected(self):
        """The bands of the window, with the workspaces as memory from before it."""
        requested = sum(w[2] for w in self.workspaces)
        size = sum(w[1] for w in self.workspaces)
        added = (requested, size, size, size)
        bands = {}
        for i, name in enumerate(BANDS):
            values = [totals[i] + added[i] for totals in self.curve]
            peak = max(values)
            at = values.index(peak)
            event = at - 1 + 3 * len(self.workspaces) if at else -1
            bands[name] = [values[0], peak, event, values[-1]]
        return {
            "device": self.device,
            "events": len(self.trace) + 3 * len(self.workspaces),
            "padding": self.padding,
            "workspaces": size,
            "bands": bands,
        }


# The programs


def stack(what, line, file="/train/model.py"):
    return [
        {"name": what, "filename": file, "line": line},
        {"name": "train", "filename": "/train/train.py", "line": 30},
    ]


def weights(npu, rng, count=24):
    """Parameters: most have sizes that are multiples of 512."""
    sizes = [768 * 768 * 2, 768 * 4, 3 * MIB, 4096 * 4096 * 2, 1024, 20480, 640 * 1024, 11 * MIB]
    return [npu.malloc(rng.choice(sizes), stack("__init__", 10 + i % 7)) for i in range(count)]


def step(npu, rng, count=40, stream=0, waits=0.0, pool=(0, 0)):
    """A forward pass that keeps blocks, with temporaries, and a backward pass that frees them."""
    kept = []
    for i in range(count):
        size = rng.choice([rng.randrange(1, 3000), rng.randrange(1, 40) * 65_536, 2 * MIB, 5 * MIB])
        if rng.random() < 0.1:
            size = rng.randrange(10, 60) * MIB + rng.choice([0, 13, 480, 512])
        kept.append(npu.malloc(size, stack("forward", 40 + i % 9), stream, pool))
        if rng.random() < 0.4:
            one = npu.malloc(rng.randrange(1, 6 * MIB), stack("softmax", 60), stream, pool)
            npu.free(one)
    while kept:
        grad = npu.malloc(rng.randrange(1, 3 * MIB), stack("backward", 80), stream, pool)
        npu.free(kept.pop(), waits=rng.random() < waits)
        npu.free(grad)


def until_full(npu, rng, size):
    """Allocates until memory runs out, then frees all of it."""
    held = []
    try:
        while True:
            held.append(npu.malloc(size + rng.randrange(MIB), stack("grow", 90)))
    except OutOfMemory:
        for block in held:
            npu.free(block)


def plain(npu, rng):
    npu.start()
    weights(npu, rng)
    for _ in range(3):
        step(npu, rng)


def expandable(npu, rng):
    npu.expandable = True
    plain(npu, rng)


def streams(npu, rng):
    npu.start()
    weights(npu, rng)
    for n in range(4):
        step(npu, rng, 20, stream=(0, 0x5555_0010)[n % 2], waits=0.3)


def expandable_streams(npu, rng):
    npu.expandable = True
    streams(npu, rng)


def late_expandable(npu, rng):
    npu.expandable = True
    weights(npu, rng)
    step(npu, rng)
    npu.start()
    for _ in range(2):
        step(npu, rng)


def late(npu, rng):
    weights(npu, rng)
    npu.start()
    for _ in range(2):
        step(npu, rng)


def switched_on(npu, rng):
    npu.start()
    weights(npu, rng, 12)
    step(npu, rng)
    npu.expandable = True
    weights(npu, rng, 12)
    for _ in range(2):
        step(npu, rng)


def retries(npu, rng):
    npu.limit = 700 * MIB
    npu.start()
    weights(npu, rng)
    step(npu, rng)
    until_full(npu, rng, 37 * MIB)
    step(npu, rng, 20)


def expandable_retries(npu, rng):
    npu.expandable = True
    retries(npu, rng)


def graph_pool(npu, rng):
    npu.start()
    weights(npu, rng)
    step(npu, rng, 20, pool=(1, 0))
    step(npu, rng)


def state_only(npu, rng):
    weights(npu, rng, 30)
    npu.start()


def torch_npu_frames(npu, rng):
    npu.start()
    file = "/opt/venv/lib/python3.11/site-packages/torch_npu/utils/storage.py"
    kept = [npu.malloc(1000, stack("_npu", 12, file))]
    step(npu, rng)
    npu.free(kept.pop())


# Name: the program, arguments of the allocator, requested bytes of workspaces, and its form.
PROGRAMS = {
    "n01_plain": (plain, {}, [30 * MIB], {}),
    "n02_plain_no_workspace": (plain, {}, [], {}),
    "n03_expandable": (expandable, {}, [90 * MIB + 7], {}),
    "n04_expandable_no_workspace": (expandable, {}, [], {}),
    "n05_streams": (streams, {}, [MIB, 3 * MIB], {}),
    "n06_expandable_streams": (expandable_streams, {}, [MIB], {}),
    "n07_late": (late, {}, [5 * MIB], {}),
    "n08_late_expandable": (late_expandable, {}, [5 * MIB], {}),
    "n09_switched_on": (switched_on, {}, [2 * MIB], {}),
    "n10_retries": (retries, {}, [2 * MIB], {}),
    "n11_expandable_retries": (expandable_retries, {}, [2 * MIB], {}),
    "n12_pages_1g": (plain, {"page_1g": True}, [2 * MIB], {}),
    "n13_expandable_pages_1g": (expandable, {"page_1g": True}, [2 * MIB], {}),
    "n14_no_padding": (plain, {"padding": 0}, [2 * MIB], {}),
    "n15_expandable_no_padding": (expandable, {"padding": 0}, [2 * MIB], {}),
    "n16_aligned_to_4k": (expandable, {"align": 4 << 10}, [2 * MIB], {}),
    "n17_graph_pool": (graph_pool, {}, [8 * MIB], {}),
    "n18_two_devices": (plain, {}, [4 * MIB], {"devices": 2}),
    "n19_state_only": (state_only, {}, [], {}),
    "n20_frames": (torch_npu_frames, {}, [], {"protocol": 2}),
}


def files():
    """Each file with the devices that it must read as."""
    for seed, (name, (program, arguments, workspaces, form)) in enumerate(PROGRAMS.items()):
        rng = random.Random(f"{seed}")
        devices = [Npu(device, **arguments) for device in range(form.get("devices", 1))]
        for npu in devices:
            program(npu, rng)
            for n, requested in enumerate(workspaces):
                npu.workspace(requested, stack("matmul", 70 + n), stream=n * 0x5555_0010)
        listed = [npu.segments() for npu in devices]
        of_caching = [len(of) - len(npu.workspaces) for of, npu in zip(listed, devices)]
        caching = [s for of, n in zip(listed, of_caching) for s in of[:n]]
        extra = [s for of, n in zip(listed, of_caching) for s in of[n:]]
        snapshot = {
            "segments": caching + extra,
            "device_traces": [list(npu.made_up()) + npu.trace for npu in devices],
        }
        raw = pickle.dumps(snapshot, form.get("protocol", 4))
        yield f"{name}.pickle.gz", gzip.compress(raw, 9, mtime=0), [n.expected() for n in devices]
