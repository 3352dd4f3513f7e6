"""Looks for holders again and again, beside threads that do everything at once.

Prints a line of JSON: the walks, those that read graphs, what was found, and whether the memory of
the program is what it was. A crash ends the process.
"""

import gc
import json
import random
import sys
import threading
import time

import torch

from vramscope.recorder import holders

WALKS = int(sys.argv[1])
#: busy: threads train, so graphs must not be read. quiet: the main thread does between walks.
WAY = sys.argv[2]
KEPT = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
stop = threading.Event()
passes = 0
errors = []


def guarded(work):
    def run():
        while not stop.is_set():
            try:
                work()
            except Exception as error:
                errors.append(repr(error))
                return

    return run


def trains():
    global passes
    net = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))).cuda()
    for _ in range(4):
        loss = net(torch.randn(256, 256, device="cuda")).square().mean()
        loss.backward()
        passes += 1
        net.zero_grad(set_to_none=True)


def keeps_graph():
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()).cuda()
    net(torch.randn(256, 256, device="cuda")).sum().backward()
    return net, net(torch.randn(256, 256, device="cuda")).sum()


def checkpoints():
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()).cuda()
    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    out = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)
    out.sum().backward()


def allocates():
    kept = [torch.empty(random.randrange(1, 4 << 20), device="cuda") for _ in range(8)]
    for tensor in kept:
        tensor.record_stream(torch.cuda.current_stream())


def collects():
    first, second = {}, {}
    first["other"], second["other"] = second, first
    first["held"] = torch.empty(1 << 20, device="cuda")
    del first, second
    gc.collect()
    time.sleep(0.05)


def ends():
    def work():
        return [{"at": at} for at in range(100)]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fails():
    def inner(depth):
        held = torch.empty(1 << 18, device="cuda")
        if depth == 0:
            raise ValueError(held.shape)
        inner(depth - 1)

    try:
        inner(8)
    except ValueError as error:
        kept = error
        time.sleep(0.001)
        del kept


torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
gc.collect()
before = torch.cuda.memory_allocated()
threads = [
    threading.Thread(target=guarded(work))
    for work in (
        *((trains, trains, checkpoints) if WAY == "busy" else ()),
        *(allocates, collects, ends, fails),
    )
]
for thread in threads:
    thread.start()
read = found = 0
kept_graphs = None
blocks = [holders.Block(0, one.untyped_storage().data_ptr(), 8 << 20) for one in KEPT]
begin = time.perf_counter()
for _ in range(WALKS):
    told = holders.find(torch, sorted(blocks))
    read += told["graph"]
    names = {told["links"][one["link"]]["name"] for one in told["blocks"] if "link" in one}
    found += len(names) == 4
    if WAY == "quiet":
        trains()
        kept_graphs = [keeps_graph() for _ in range(2)]
    time.sleep(random.random() * 0.005)
seconds = time.perf_counter() - begin
kept_graphs = None
stop.set()
for thread in threads:
    thread.join()
gc.collect()
torch.cuda.synchronize()
print(
    json.dumps(
        {
            "walks": WALKS,
            "read": read,
            "found": found,
            "passes": passes,
            "errors": errors[:3],
            "grown": torch.cuda.memory_allocated() - before,
            "seconds": round(seconds, 1),
            "settings": [gc.isenabled(), sys.getswitchinterval() == 0.005],
        }
    )
)
