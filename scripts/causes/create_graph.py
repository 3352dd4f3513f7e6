"""backward(create_graph=True) with gradients that are set to zero in place.

Each gradient is the sum of itself and a new one, so it keeps the graphs of all backward passes.
CURE=1 drops the gradients.
"""

import os

import torch
from torch import nn

CURE = bool(os.environ.get("CURE"))

critic = nn.Sequential(nn.Linear(1024, 2048), nn.Tanh(), nn.Linear(2048, 1024), nn.Tanh())
critic = critic.append(nn.Linear(1024, 1)).cuda()
optimizer = torch.optim.RMSprop(critic.parameters())
for _ in range(9):
    sample = torch.randn(512, 1024, device="cuda")
    critic(sample).mean().backward(create_graph=True)
    optimizer.step()
    for parameter in critic.parameters():
        if CURE:
            parameter.grad = None
        else:
            parameter.grad.data.zero_()
