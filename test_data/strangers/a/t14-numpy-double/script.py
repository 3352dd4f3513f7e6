import numpy as np
import torch
from torch import nn

rng = np.random.RandomState(0)
series = np.sin(np.arange(200_000) / 50.0) + 0.1 * rng.randn(200_000)
windows = np.lib.stride_tricks.sliding_window_view(series, 257)[::16]
inputs, targets = windows[:, :-1], windows[:, -1:]

model = nn.Sequential(
    nn.Linear(256, 2048), nn.SiLU(),
    nn.Linear(2048, 2048), nn.SiLU(),
    nn.Linear(2048, 2048), nn.SiLU(),
    nn.Linear(2048, 1),
)
model.double()  # RuntimeError: mat1 and mat2 must have the same dtype
model.cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

batch = 2048
for epoch in range(2):
    perm = rng.permutation(len(inputs))
    for start in range(0, len(perm) - batch + 1, batch):
        pick = perm[start : start + batch]
        x = torch.from_numpy(inputs[pick]).cuda()
        y = torch.from_numpy(targets[pick]).cuda()
        loss = torch.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", float(loss))
