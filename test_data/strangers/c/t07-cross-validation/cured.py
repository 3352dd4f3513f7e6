from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn


@dataclass
class Fold:
    index: int
    net: nn.Module
    optimizer: torch.optim.Optimizer
    scores: list = field(default_factory=list)


def make_net(features):
    return nn.Sequential(
        nn.Linear(features, 2048), nn.BatchNorm1d(2048), nn.ReLU(),
        nn.Linear(2048, 2048), nn.BatchNorm1d(2048), nn.ReLU(),
        nn.Linear(2048, 1),
    ).cuda()


def fit(index, X, y, train, test, epochs=2):
    net = make_net(X.shape[1])
    fold = Fold(index, net, torch.optim.Adam(net.parameters(), lr=1e-3))
    for _ in range(epochs):
        for rows in np.array_split(np.random.permutation(train), 8):
            loss = nn.functional.binary_cross_entropy_with_logits(net(X[rows].cuda()), y[rows].cuda())
            fold.optimizer.zero_grad()
            loss.backward()
            fold.optimizer.step()
        with torch.no_grad():
            fold.scores.append(((net(X[test].cuda()) > 0).float().cpu() == y[test]).float().mean().item())
    return fold


X, y = torch.randn(4000, 300), torch.randint(0, 2, (4000, 1)).float()
splits = np.array_split(np.random.permutation(4000), 10)
folds = []
for k, test in enumerate(splits):
    train = np.concatenate([s for j, s in enumerate(splits) if j != k])
    folds.append(fit(k, X, y, train, test).scores)
    print("fold", k, "accuracy", folds[-1][-1])
print("mean", np.mean([f[-1] for f in folds]))
