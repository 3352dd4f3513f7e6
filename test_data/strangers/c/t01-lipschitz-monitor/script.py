import torch
from torch import nn

critic = nn.Sequential(
    nn.Linear(256, 1024), nn.Softplus(),
    nn.Linear(1024, 1024), nn.Softplus(),
    nn.Linear(1024, 1024), nn.Softplus(),
    nn.Linear(1024, 1),
).cuda()
generator = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-5)


def slope(real, fake):
    eps = torch.rand(len(real), 1, device=real.device)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    grad, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return grad.norm(2, dim=1).mean()


lipschitz = torch.ones((), device="cuda")
for it in range(1, 81):
    real = torch.randn(512, 256, device="cuda")
    fake = generator(torch.randn(512, 64, device="cuda"))
    loss_c = critic(fake.detach()).mean() - critic(real).mean()
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    with torch.no_grad():
        for p in critic.parameters():
            p.clamp_(-0.01, 0.01)
    lipschitz = 0.95 * lipschitz + 0.05 * slope(real, fake.detach())

    if it % 5 == 0:
        loss_g = -critic(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    if it % 20 == 0:
        print(f"{it:4d} critic {loss_c.item():+.4f} lipschitz {lipschitz.item():.3f}")
