"""A checkpoint loaded to the GPU stays beside the weights; CURE=1 loads it to the CPU."""

import os
import tempfile

import torch
from torch import nn

CURE = bool(os.environ.get("CURE"))


def network():
    return nn.LSTM(1024, 1024, num_layers=4, batch_first=True)


with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/last.pt"
    torch.save({"epoch": 7, "net": network().state_dict()}, path)
    state = torch.load(path, map_location="cpu" if CURE else "cuda")
net = network().cuda()
net.load_state_dict(state["net"])
optimizer = torch.optim.Adam(net.parameters())
for _ in range(3):
    frames = torch.randn(8, 64, 1024, device="cuda")
    net(frames)[0].square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
