"""Records with names, every second step, and keeps two."""

import os

import torch

import vramscope

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Linear(512, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
folder = os.environ["RUN"]
with vramscope.record(folder, every=2, keep=2, model=model, optimizer=optimizer):
    for _ in range(6):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
