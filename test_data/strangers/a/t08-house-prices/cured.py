import pandas as pd
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(7)
table = pd.DataFrame(rng.normal(size=(32768, 48)).astype("float32")).add_prefix("f")
table["price"] = rng.lognormal(size=len(table)).astype("float32")

X = torch.from_numpy(table.drop(columns="price").to_numpy()).cuda()
y = torch.from_numpy(table["price"].to_numpy()).cuda()
X = (X - X.mean(0)) / X.std(0)

model = nn.Sequential(
    nn.Linear(X.shape[1], 256), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(256, 256), nn.ReLU(),
    nn.Linear(256, 1),
).cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
batch_size = 8192

for epoch in range(3):
    order = torch.randperm(len(X), device="cuda")
    running = 0.0
    for i in range(0, len(X), batch_size):
        idx = order[i : i + batch_size]
        prediction = model(X[idx]).squeeze(1)
        loss = ((prediction - y[idx]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    print(f"epoch {epoch} mse {running:.3f}")
