import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.backends.cudnn.enabled = False


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.time = nn.Linear(64, c)
        self.body = nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x, t):
        return x + self.body(x + self.time(t)[:, :, None, None])


class Denoiser(nn.Module):
    def __init__(self, c=128):
        super().__init__()
        self.time, self.inp, self.out = nn.Linear(1, 64), nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1)
        self.blocks = nn.ModuleList(Res(c) for _ in range(4))

    def forward(self, x, t):
        x, t = self.inp(x), self.time(t[:, None])
        for block in self.blocks:
            x = block(x, t)
        return self.out(x)


model = Denoiser().cuda()
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
for step in range(20):
    x0, t = torch.rand(16, 3, 32, 32).cuda() * 2 - 1, torch.rand(16).cuda()
    noise, a = torch.randn_like(x0), t.view(-1, 1, 1, 1)
    loss = F.mse_loss(model((1 - a).sqrt() * x0 + a.sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.001)
print("loss", loss.item())
