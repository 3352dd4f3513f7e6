"""The notation of the scenarios, and its translation to snapshots.

Events of a trace are separated by semicolons. Addresses are hexadecimal, sizes decimal bytes:
    A a s     alloc                    R a   free_requested
    C a       free_completed           F a   R, then C
    SA a s    segment_alloc            SF a s  segment_free
    SM a s    segment_map              SU a s  segment_unmap
    OOM s f   oom: s requested, f free on the device
A free has the size of the last alloc at its address. For a block from before the window the size is
given: `F a s`.

Final segments are separated by semicolons: `base+total[pool]: size/requested state, ...`. States:
    a  active_allocated     p  active_pending_free     i  inactive
`[0,1]` is the pool, by default (0, 0). `x` before the colon marks an expandable segment.
"""

import re

CLOCK = 1_700_000_000_000_000
STATES = {"a": "active_allocated", "p": "active_pending_free", "i": "inactive"}
SEGMENT_ACTIONS = {
    "SA": "segment_alloc",
    "SF": "segment_free",
    "SM": "segment_map",
    "SU": "segment_unmap",
}
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": "",
    "max_split_size": -1,
    "garbage_collection_threshold": 0.0,
    "expandable_segments": False,
    "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False,
    "pinned_use_cuda_host_register": False,
    "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)},
}


def stack(scenario, what, n):
    """Three frames; the innermost is unique and names the scenario and the event."""
    return [
        {"name": f"{what}_{n}", "filename": f"/train/{scenario}.py", "line": 100 + n},
        {"name": "step", "filename": "/train/loop.py", "line": 20},
        {"name": "<module>", "filename": "/train/main.py", "line": 5},
    ]


def trace(scenario, text):
    """The trace entries of a line of notation.

    A completed free shares the stack object of its request, as in PyTorch.
    """
    out, sizes = [], {}

    def put(action, addr, size, frames):
        step = 1 if action == "free_completed" else 1000
        time = out[-1]["time_us"] + step if out else CLOCK
        out.append(
            {
                "action": action,
                "addr": addr,
                "size": size,
                "stream": 0,
                "time_us": time,
                "frames": frames,
            }
        )

    for n, item in enumerate(filter(None, (part.strip() for part in text.split(";")))):
        op, *rest = item.split()
        if op == "OOM":
            entry = {
                "action": "oom",
                "device_free": int(rest[1]),
                "size": int(rest[0]),
                "stream": 0,
            }
            out.append(
                entry
                | {
                    "time_us": out[-1]["time_us"] + 1000 if out else CLOCK,
                    "frames": stack(scenario, "oom", n),
                }
            )
            continue
        addr = int(rest[0], 16)
        if op in SEGMENT_ACTIONS:
            put(SEGMENT_ACTIONS[op], addr, int(rest[1]), stack(scenario, "segment", n))
        elif op == "A":
            sizes[addr] = int(rest[1])
            put("alloc", addr, sizes[addr], stack(scenario, "alloc", n))
        elif op in ("F", "R", "C"):
            size = int(rest[1]) if len(rest) > 1 else sizes[addr]
            frames = stack(scenario, "free", n)
            if op in "FR":
                put("free_requested", addr, size, frames)
            if op in "FC":
                put("free_completed", addr, size, frames)
        else:
            raise ValueError(f"{scenario}: unknown event: {item}")
    return out


def segments(scenario, text, device=0):
    """The final segments of a line of notation, by address."""
    out = []
    for n, item in enumerate(filter(None, (part.strip() for part in text.split(";")))):
        m = re.fullmatch(r"([0-9a-f]+)\+(\d+)(?:\[(\d+),(\d+)\])?(x?):\s*(.*)", item)
        if not m:
            raise ValueError(f"{scenario}: not a segment: {item}")
        base, total = int(m[1], 16), int(m[2])
        blocks, at = [], base
        for k, block in enumerate(m[6].split(",")):
            sizes, state = block.split()
            size, _, requested = sizes.partition("/")
            blocks.append(
                {
                    "address": at,
                    "size": int(size),
                    "requested_size": int(requested or 0),
                    "state": STATES[state],
                    "frames": [] if state == "i" else stack(scenario, f"segment{n}_block", k),
                }
            )
            at += int(size)
        if at != base + total:
            raise ValueError(f"{scenario}: the blocks do not fill the segment: {item}")
        active = [b for b in blocks if b["state"] != "inactive"]
        out.append(
            {
                "device": device,
                "address": base,
                "total_size": total,
                "allocated_size": sum(
                    b["size"] for b in active if b["state"] == "active_allocated"
                ),
                "active_size": sum(b["size"] for b in active),
                "requested_size": sum(b["requested_size"] for b in active),
                "stream": 0,
                "segment_type": "small",
                "segment_pool_id": (int(m[3] or 0), int(m[4] or 0)),
                "is_expandable": m[5] == "x",
                "frames": [],
                "blocks": blocks,
            }
        )
    return sorted(out, key=lambda s: s["address"])


def snapshot(scenario, devices):
    """A snapshot. `devices` is a list of (trace, end) in notation."""
    return {
        "segments": [s for i, (_, end) in enumerate(devices) for s in segments(scenario, end, i)],
        "device_traces": [trace(scenario, text) for text, _ in devices],
        "allocator_settings": SETTINGS,
        "external_annotations": [],
    }
