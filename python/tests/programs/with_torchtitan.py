"""The loop of torchtitan's trainer around its profiler, with the recorder in its place."""

import os

import torch
import torchtitan.tools.profiler

from vramscope.integrations.torchtitan import memory_snapshot

# What the trainer calls each step, and the recorder has too.
assert hasattr(torchtitan.tools.profiler.Profiler, "step")
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.AdamW(model.parameters())


class Container:
    """As torchtitan holds the optimizers of the parts of a model."""

    def __init__(self) -> None:
        self.optimizers = [optimizer]


options = {"model": [model], "optimizer": Container(), "global_step": 10, "every": 2}
with memory_snapshot(os.environ["RUN"], **options) as profiler:
    for _ in range(4):
        model(torch.randn(8, 256, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        profiler.step()
