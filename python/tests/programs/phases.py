"""Trains a few layers. The argument is the number of rows, which says where memory runs out."""

import sys

import torch


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1024, 1024) for _ in range(6))

    def forward(self, rows):
        for layer in self.layers:
            # Both keep a result for backward.
            rows = torch.relu(layer(rows))
        return rows


model = Layers().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(int(sys.argv[1]), 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
