"""Factors of users and items with Adam: gradient and moments of whole tables.

CURE=1 makes the gradients sparse.
"""

import os

import torch
from torch import nn

CURE = bool(os.environ.get("CURE"))


class Factors(nn.Module):
    def __init__(self, users=400_000, items=90_000, width=64):
        super().__init__()
        self.users = nn.Embedding(users, width, sparse=CURE)
        self.items = nn.Embedding(items, width, sparse=CURE)
        self.score = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, user, item):
        return self.score(torch.cat([self.users(user), self.items(item)], -1)).squeeze(-1)


model = Factors().cuda()
tables = [*model.users.parameters(), *model.items.parameters()]
if CURE:
    optimizers = [torch.optim.SparseAdam(tables), torch.optim.Adam(model.score.parameters())]
else:
    optimizers = [torch.optim.Adam(model.parameters())]
for _ in range(4):
    user = torch.randint(400_000, (8192,), device="cuda")
    item = torch.randint(90_000, (8192,), device="cuda")
    target = torch.zeros(8192, device="cuda")
    nn.functional.mse_loss(model(user, item), target).backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
