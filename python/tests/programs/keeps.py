"""A trainer that keeps its losses with their graphs, until memory runs out."""

import torch


class Trainer:
    def __init__(self):
        self.net = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        self.losses = []

    def step(self, rows):
        batch = torch.randn(rows, 1024, device="cuda")
        loss = self.net(batch).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append((self.net(batch) * 1.0).sum())


def main():
    trainer = Trainer()
    for _ in range(100):
        trainer.step(2048)


main()
