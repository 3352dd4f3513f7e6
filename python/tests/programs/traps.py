"""Situations in which little may be told, or read. Prints a line of JSON for the one named."""

import json
import sys
import threading

import torch

from vramscope.recorder import holders

MIB = 1 << 20


def find(**options):
    blocks = holders.live_blocks(torch.cuda.memory_snapshot())
    return holders.find(torch, blocks, **options), blocks


def state(told, blocks, mib):
    """How the block of a size is told."""
    sizes = {(one.device, one.address): one.bytes for one in blocks}
    for one in told["blocks"]:
        if 0 <= sizes[one["device"], one["address"]] - mib * MIB <= MIB:
            return "link" if "link" in one else one["none"]
    return "missing"


def floats(mib):
    return torch.empty(mib * MIB // 4, device="cuda")


def cut():
    kept = {"first": [floats(8)]}
    kept["second"] = kept
    told, _ = find(seconds=0.0)
    print(json.dumps(told))


def backward():
    """Another thread waits in a hook of its backward pass."""
    inside, done = threading.Event(), threading.Event()
    x = torch.ones(1, device="cuda", requires_grad=True)

    def hook(gradient):
        inside.set()
        done.wait()

    x.register_hook(hook)
    local = floats(24)
    out = (torch.ones(1, device="cuda", requires_grad=True) * floats(32)).sum()

    worker = threading.Thread(target=lambda: (x * 2).sum().backward())
    worker.start()
    inside.wait()
    told, blocks = find()
    done.set()
    worker.join()
    print(
        json.dumps(
            {
                "graph": told["graph"],
                "local": state(told, blocks, 24),
                "saved": state(told, blocks, 32),
            }
        )
    )
    del local, out


def inside():
    """The walk runs in a hook of the only backward pass."""
    x = torch.ones(1, device="cuda", requires_grad=True)
    found = {}

    def hook(gradient):
        told, blocks = find()
        found.update(graph=told["graph"], saved=state(told, blocks, 32))

    x.register_hook(hook)
    out = (torch.ones(1, device="cuda", requires_grad=True) * floats(32)).sum()
    (x * 2).sum().backward()
    del out
    print(json.dumps(found))


def profiled():
    calls = []

    def profile(frame, event, argument):
        calls.append(event)

    out = (torch.ones(1, device="cuda", requires_grad=True) * floats(32)).sum()
    sys.setprofile(profile)
    told, _ = find()
    kept = sys.getprofile() is profile
    sys.setprofile(None)
    del out
    print(json.dumps({"kept": kept, "graph": told["graph"]}))


if __name__ == "__main__":
    {"cut": cut, "backward": backward, "inside": inside, "profiled": profiled}[sys.argv[1]]()
