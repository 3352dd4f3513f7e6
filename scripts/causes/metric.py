"""A metric over all pixels that is never reset keeps those of each validation.

CURE=1 resets it.
"""

import os

import torch
from torch import nn

CURE = bool(os.environ.get("CURE"))


class Quantiles:
    """Keeps all scores until they are computed."""

    def __init__(self):
        self.scores = []

    def add(self, scores):
        self.scores.append(scores.sigmoid().flatten())

    def reset(self):
        self.scores.clear()


depth = nn.Sequential(nn.Conv2d(3, 24, 5, padding=2), nn.GELU(), nn.Conv2d(24, 1, 1)).cuda()
optimizer = torch.optim.Adam(depth.parameters())
quantiles = Quantiles()
for step in range(1, 13):
    frames, truth = (torch.randn(2, n, 128, 128, device="cuda") for n in (3, 1))
    (depth(frames) - truth).abs().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 3 == 0:
        for _ in range(4):
            with torch.no_grad():
                quantiles.add(depth(torch.randn(16, 3, 128, 128, device="cuda")))
        if CURE:
            quantiles.reset()
