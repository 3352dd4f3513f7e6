"""Prints seconds with a large history: of PyTorch's dump, of the recorder's, and of a state."""

import os
import time

import torch

import vramscope

EVENTS = 150_000
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(24))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
run = os.environ["RUN"]


def step() -> None:
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def events() -> int:
    stats = torch.cuda.memory_stats()
    # A free is requested and completed.
    return stats["allocation.all.allocated"] + 2 * stats["allocation.all.freed"]


def seconds(act) -> float:
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


os.makedirs(run)
with vramscope.record(run, states_every=1, model=model, optimizer=optimizer) as recorder:
    step()
    while events() < EVENTS:
        step()
    own, recorded = [], []
    for number in range(3):
        path = f"{run}/own_{number}.pickle"
        own.append(seconds(lambda path=path: torch.cuda.memory._dump_snapshot(path)))
        recorded.append(seconds(lambda number=number: recorder.dump(f"dump_{number}")))
    state = min(seconds(recorder._add_state) for _ in range(5))
    print(min(own), min(recorded), state)
