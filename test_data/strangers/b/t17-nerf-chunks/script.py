import torch
from torch import nn


class NeRF(nn.Module):
    def __init__(self, width=256, freqs=10):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(freqs))
        self.trunk = nn.Sequential(nn.Linear(6 * freqs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, xyz):
        angles = (xyz[..., None] * self.bands).flatten(-2)
        return self.trunk(torch.cat([angles.sin(), angles.cos()], dim=-1))


def render(field, origins, directions, samples=64):
    t = torch.linspace(2.0, 6.0, samples, device=origins.device)
    raw = field(origins[:, None] + directions[:, None] * t[:, None])
    alpha = 1 - torch.exp(-raw[..., 3].relu() * (4.0 / samples))
    weights = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1]], dim=1), dim=1)
    return (weights[..., None] * raw[..., :3].sigmoid()).sum(dim=1)


field = NeRF().cuda()
optimizer = torch.optim.Adam(field.parameters(), lr=5e-4)
for step in range(20):
    rays, pixels = torch.randn(2, 1024, 3, device="cuda"), torch.rand(1024, 3, device="cuda")
    loss = (render(field, rays[0], rays[1]) - pixels).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

view = torch.randn(2, 100 * 100, 3)
with torch.no_grad():
    image = torch.cat([render(field, o.cuda(), d.cuda()).cpu() for o, d in zip(view[0].split(1024), view[1].split(1024))])
print("loss", loss.item(), "image", image.view(100, 100, 3).shape)
