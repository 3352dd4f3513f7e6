"""Prints the milliseconds of a step: recorded not at all, by PyTorch alone, or by the recorder."""

import contextlib
import os
import time

import torch

import vramscope

STEPS = 50
mode = os.environ["MODE"]
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(24))).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step() -> None:
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def recording() -> contextlib.AbstractContextManager:
    if mode == "recorder":
        return vramscope.record(os.environ["RUN"])
    if mode == "names":
        return vramscope.record(os.environ["RUN"], model=model, optimizer=optimizer)
    if mode == "own":
        # The arguments of the recorder.
        torch.cuda.memory._record_memory_history(
            stacks="python",
            max_entries=1_000_000,
            global_record_annotations=True,
            compile_context=True,
        )
    return contextlib.nullcontext()


with recording():
    for _ in range(20):
        step()
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        best = min(best, time.perf_counter() - begin)
    print(best * 1000 / STEPS)
