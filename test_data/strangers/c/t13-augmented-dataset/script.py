import torch
from torch import nn

torch.backends.cudnn.enabled = False
device = "cuda" if torch.cuda.is_available() else "cpu"


def augment(x, y):
    flipped = x.flip(-1)
    noisy = x + 0.05 * torch.randn_like(x)
    return torch.cat([x, flipped, noisy]), torch.cat([y, y, y])


def spectrograms(n):
    return torch.rand(n, 1, 64, 128), torch.randint(0, 35, (n,))


X, y = [t.to(device) for t in spectrograms(256)]
net = nn.Sequential(
    nn.Conv2d(1, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 35),
).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
steps_per_epoch = 10

for epoch in range(5):
    X, y = augment(X, y)
    perm = torch.randperm(len(X), device=device)
    for i in range(steps_per_epoch):
        rows = perm[i * 64 : (i + 1) * 64]
        loss = nn.functional.cross_entropy(net(X[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
