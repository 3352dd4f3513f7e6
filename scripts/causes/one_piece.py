"""A whole encoder as one checkpointed piece; CURE=1 checkpoints each layer."""

import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

CURE = bool(os.environ.get("CURE"))
WIDTH, LAYERS, TOKENS = 512, 8, 512


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [
            nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
            for _ in range(LAYERS)
        ]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(WIDTH, 100)

    def forward(self, tokens):
        if CURE:
            hidden = checkpoint_sequential(self.layers, LAYERS, tokens, use_reentrant=False)
        else:
            hidden = checkpoint(self.layers, tokens, use_reentrant=False)
        return self.head(hidden[:, 0])


encoder = Encoder().cuda()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for _ in range(3):
    batch = torch.randn(16, TOKENS, WIDTH, device="cuda")
    label = torch.zeros(16, dtype=torch.long, device="cuda")
    nn.functional.cross_entropy(encoder(batch), label).backward()
    optimizer.step()
    optimizer.zero_grad()
