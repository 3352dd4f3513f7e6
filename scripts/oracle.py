#!/usr/bin/env python3
"""Reads a snapshot in a slow and obvious way, as the reference of the product's numbers.

oracle.py FILE(.pickle|.gz) prints JSON. For each device, in requested bytes as in trace entries:
  active    from alloc to free_completed: requested_bytes of the product
  reserved  from segment_alloc/map to segment_free/unmap: reserved_bytes of the product
start_bytes is the value before the first event, end_bytes the value after the last. peak_event is
the 0-based index of the first event after which the value is largest, or -1 for the state before
the first event.

Rules for incomplete traces:
- A block has the size of its alloc, whatever the size of its free.
- An alloc on a live address ends the old block at that event: its free was lost.
- A completion without an alloc in the trace ends a block from before the window. When its address
  has completed earlier in the trace, its alloc was lost: the block lives from that completion on.
- An active block of the final segments that is not live after the trace is from before the window.
  When its address has completed in the trace, its alloc was lost: the block lives from the last
  completion on.

Pinned host memory is device 128. Its trace has rounded sizes. A block that is live at the end has
the requested size of the final segments, if that is smaller.
"""

import collections
import gzip
import io
import json
import pickle
import sys

HOST = 128
ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


class Inert(pickle.Unpickler):
    """Reads plain data only: refuses pickles that call functions."""

    def find_class(self, module, name):
        if (module, name) == ("torch.jit._pickle", "restore_type_tag"):
            return lambda value, tag: value
        raise pickle.UnpicklingError(f"refused: {module}.{name}")


def load(raw):
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    d = Inert(io.BytesIO(raw)).load()
    if isinstance(d, list):
        d = {"segments": d}
    return {
        "segments": d["segments"],
        "device_traces": d.get("device_traces") or [],
        "external_annotations": d.get("external_annotations"),
        "host_traces": d.get("host_traces") or [],
        "host_segments": d.get("host_segments") or [],
    }


def curve(start, deltas):
    by_event = collections.OrderedDict()
    for i, d in sorted(deltas, key=lambda x: x[0]):
        by_event[i] = by_event.get(i, 0) + d
    peak, at, now = start, -1, start
    for i, d in by_event.items():
        now += d
        if now > peak:
            peak, at = now, i
    return {"start_bytes": start, "peak_bytes": peak, "peak_event": at, "end_bytes": now}


def stack_key(frames):
    return tuple((f.get("name"), f.get("filename"), f.get("line")) for f in frames or ())


def requested(block):
    size = block.get("requested_size", block["size"])
    if not block.get("requested_size") and block.get("history"):
        size = block["history"][0].get("real_size", block["size"])
    return size


def host_segment(s):
    """A segment of pinned memory with its only block."""
    if "blocks" in s:
        return s
    state = "active_allocated" if s["allocated_size"] else "inactive"
    if s["active_size"] and not s["allocated_size"]:
        state = "active_pending_free"
    return s | {"blocks": [{"address": s["address"], "size": s["total_size"], "state": state}]}


def host(d):
    segments = [host_segment(s) for s in d["host_segments"]]
    ends = {
        b["address"]: b["requested_size"]
        for s in segments
        for b in s["blocks"]
        if b["state"] in ACTIVE and b.get("requested_size", b["size"]) < b["size"]
    }
    # The last allocation of such an address is the block that is live at the end.
    trace = list(d["host_traces"])
    for n, e in reversed(list(enumerate(trace))):
        if e["action"] == "alloc" and e["addr"] in ends:
            trace[n] = e | {"size": ends.pop(e["addr"])}
    return device(trace, segments, HOST)


def device(trace, segments, i):
    live_end = {}
    for s in segments:
        a = s.get("address")
        for b in s["blocks"]:
            a = b.get("address", a)
            if b["state"] in ACTIVE:
                live_end[a] = b
            a = (a or 0) + b["size"]
    live, done = {}, {}  # address -> index into blocks; address -> event of its last completion
    blocks = []  # [size, first event, end event or None, stack]
    freed_before, deltas, reserved = 0, [], []
    start = 0
    for n, e in enumerate(trace):
        action, a, size = e.get("action"), e.get("addr"), e.get("size", 0)
        if action == "alloc":
            if a in live:
                old = blocks[live[a]]
                old[2] = n
                deltas.append((n, -old[0]))
            live[a] = len(blocks)
            blocks.append([size, n, None, stack_key(e.get("frames"))])
            deltas.append((n, size))
        elif action in ("free_completed", "free"):
            if a in live:
                b = blocks[live.pop(a)]
                b[2] = n
                deltas.append((n, -b[0]))
            elif a in done:
                blocks.append([size, done[a], n, ()])
                deltas += [(done[a], size), (n, -size)]
            else:
                freed_before += 1
                start += size
                deltas.append((n, -size))
            done[a] = n
        elif action in ("segment_alloc", "segment_map"):
            reserved.append((n, size))
        elif action in ("segment_free", "segment_unmap"):
            reserved.append((n, -size))
    live_before = 0
    for a, b in live_end.items():
        if a in live:
            continue
        if a in done:
            deltas.append((done[a], requested(b)))
        else:
            live_before += 1
            start += requested(b)
    total = sum(s["total_size"] for s in segments)
    out = {
        "device": i,
        "events": len(trace),
        "actions": dict(sorted(collections.Counter(str(e.get("action")) for e in trace).items())),
        "segments": len(segments),
        "allocations_in_window": sum(e.get("action") == "alloc" for e in trace),
        "preexisting_freed": freed_before,
        "preexisting_live": live_before,
        "active": curve(start, deltas),
        "reserved": curve(total - sum(x for _, x in reserved), reserved),
        "end_live_blocks": len(live_end),
        "end_live_requested_bytes": sum(requested(b) for b in live_end.values()),
        "end_live_block_bytes": sum(b["size"] for b in live_end.values()),
        "unique_stacks_of_allocs": len({b[3] for b in blocks}),
    }
    p = out["active"]["peak_event"]
    at_peak = [b for b in blocks if b[1] <= p and (b[2] is None or b[2] > p)]
    by_stack = collections.Counter()
    for b in at_peak:
        by_stack[b[3]] += b[0]
    out["peak_live_in_window_blocks"] = len(at_peak)
    out["peak_live_in_window_bytes"] = sum(by_stack.values())
    out["peak_top_stack_bytes"] = [v for _, v in by_stack.most_common(5)]
    return out


def read(raw, name):
    d = load(raw)
    n = max(
        len(d["device_traces"]), 1 + max((s.get("device", 0) for s in d["segments"]), default=-1)
    )
    devices = []
    for i in range(n):
        trace = d["device_traces"][i] if i < len(d["device_traces"]) else []
        segments = [s for s in d["segments"] if s.get("device", 0) == i]
        devices.append(device(trace, segments, i))
    devices.append(host(d))
    return {
        "file": name,
        "devices": [x for x in devices if x["events"] or x["segments"]],
        "annotations": len(d["external_annotations"] or ()),
    }


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as f:
        json.dump(read(f.read(), sys.argv[1].rsplit("/", 1)[-1]), sys.stdout, indent=1)
    print()
