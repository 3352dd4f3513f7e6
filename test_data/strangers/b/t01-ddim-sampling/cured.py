import torch
from torch import nn

torch.backends.cudnn.enabled = False


class Eps(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.middle = nn.Sequential(nn.GroupNorm(6, width), nn.GELU(), nn.Conv2d(width, width, 3, padding=1), nn.GELU())
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, alpha):
        h = self.enter(torch.cat([x, alpha.expand(len(x), 1, *x.shape[2:])], dim=1))
        return self.leave(h + self.middle(h))


class DDIM:
    def __init__(self, net, timesteps=50):
        self.net = net
        self.alphas = torch.linspace(0.999, 0.001, timesteps + 1, device="cuda").cos().square()

    def loss(self, x0):
        a = self.alphas[25].view(1, 1, 1, 1)
        eps = torch.randn_like(x0)
        return (self.net(a.sqrt() * x0 + (1 - a).sqrt() * eps, a) - eps).square().mean()

    @torch.no_grad()
    def sample(self, n, size):
        x = torch.randn(n, 3, size, size, device="cuda")
        for now, nxt in zip(self.alphas[:-1], self.alphas[1:]):
            eps = self.net(x, now.view(1, 1, 1, 1))
            x0 = (x - (1 - now).sqrt() * eps) / now.sqrt()
            x = nxt.sqrt() * x0 + (1 - nxt).sqrt() * eps
        return x.clamp(-1, 1)


ddim = DDIM(Eps().cuda())
opt = torch.optim.Adam(ddim.net.parameters(), lr=1e-3)
for step in range(10):
    opt.zero_grad()
    ddim.loss(torch.rand(16, 3, 64, 64, device="cuda")).backward()
    opt.step()
print("samples", ddim.sample(16, 64).mean().item())
