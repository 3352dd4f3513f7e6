from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    users: int = 1_200_000
    items: int = 300_000
    dim: int = 64
    batch: int = 1024
    steps: int = 20


class TwoTowers(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.user = nn.Embedding(cfg.users, cfg.dim, sparse=True)
        self.item = nn.Embedding(cfg.items, cfg.dim, sparse=True)

    def forward(self, u, i):
        return self.user(u) @ self.item(i).T


def fit(cfg):
    model = TwoTowers(cfg).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    positives = torch.arange(cfg.batch, device="cuda")
    for step in range(cfg.steps):
        users = torch.randint(cfg.users, (cfg.batch,)).cuda()
        items = torch.randint(cfg.items, (cfg.batch,)).cuda()
        loss = nn.functional.cross_entropy(model(users, items), positives)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        if not step % 10:
            print(step, round(loss.item(), 4))


fit(Config())
