"""A loop with Accelerate, which accumulates the gradients of two batches."""

import os

import torch
from accelerate import Accelerator

import vramscope
from vramscope.integrations.accelerate import watch

with vramscope.record(os.environ["RUN"], every=2) as recorder:
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256))
    optimizer = torch.optim.AdamW(model.parameters())
    rows = torch.utils.data.TensorDataset(torch.randn(64, 256))
    data = torch.utils.data.DataLoader(rows, batch_size=8)
    model, optimizer, data = watch(recorder, accelerator.prepare(model, optimizer, data))
    for (batch,) in data:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).square().mean())
            optimizer.step()
            optimizer.zero_grad()
