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


def audited():
    """The program has a hook of audit events, which is a function of Python."""
    heard = []
    sys.addaudithook(lambda event, arguments: heard.append(event))
    out = (torch.ones(1, device="cuda", requires_grad=True) * floats(32)).sum()
    told, _ = find(seconds=10)
    heard.clear()
    exec("")
    left = sys.getprofile() is None
    print(json.dumps({"graph": told["graph"], "hears": "exec" in heard, "left": left}))
    del out


def refused():
    """The hook of audit events refuses everything, once the walk has begun."""
    begun = []

    def hook(event, arguments):
        begun.extend([event] if event == "sys.setprofile" else [])
        if begun and event.startswith(("sys.", "gc.")):
            raise RuntimeError(event)

    out = (torch.ones(1, device="cuda", requires_grad=True) * floats(32)).sum()
    sys.addaudithook(hook)
    begun.append("now")
    try:
        find(seconds=10)
        failed = ""
    except RuntimeError as error:
        failed = str(error)
    begun.clear()
    # A function of Python still runs.
    print(json.dumps({"failed": failed, "runs": (lambda: True)()}))
    del out


def beside():
    """The first walks of a process, beside threads that wait for the interpreter's lock."""
    kept, turns, stop = floats(8), [], threading.Event()

    def work():
        while not stop.is_set():
            turns.append(json.loads("[1, 2]"))
            turns.clear()

    out = (torch.ones(1, device="cuda", requires_grad=True) * floats(32)).sum()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    told = [find(seconds=10)[0] for _ in range(5)]
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps({key: [one[key] for one in told] for key in ("complete", "graph")}))
    del kept, out


if __name__ == "__main__":
    globals()[sys.argv[1]]()
