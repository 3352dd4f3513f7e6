import os
import tempfile

import torch
from torch import nn

device = torch.device("cuda")


def build():
    return nn.Sequential(nn.Linear(512, 3072), nn.ReLU(), nn.Linear(3072, 3072), nn.ReLU(), nn.Linear(3072, 512))


def earlier_run(path):
    model = build()
    ema = {k: v.clone() for k, v in model.state_dict().items()}
    torch.save({"step": 1000, "model": model.state_dict(), "ema": ema}, path)


path = os.path.join(tempfile.mkdtemp(), "last.pt")
earlier_run(path)

model = build().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

checkpoint = torch.load(path, map_location=device)
model.load_state_dict(checkpoint["model"])
start = checkpoint["step"]
os.remove(path)

for step in range(start, start + 10):
    x = torch.randn(128, 512, device=device)
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"resumed at {start}, now at {step + 1}, loss {loss.item():.4f}")
