import torch
from torch import nn
import torch.nn.functional as F

torch.backends.cudnn.enabled = False
device = torch.device("cuda")
nz, batch_size = 100, 64


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, inplace=True))


netG = nn.Sequential(nn.ConvTranspose2d(nz, 256, 4, 1, 0), up(256, 128), up(128, 64), up(64, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()).to(device)
netD = nn.Sequential(down(3, 192), down(192, 256), down(256, 256), nn.Flatten(), nn.Linear(256 * 64, 1)).to(device)
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
ones, zeros = torch.ones(batch_size, 1, device=device), torch.zeros(batch_size, 1, device=device)

for it in range(12):
    real = torch.rand(batch_size, 3, 64, 64, device=device) * 2 - 1
    fake = netG(torch.randn(batch_size, nz, 1, 1, device=device))

    optD.zero_grad()
    lossD = F.binary_cross_entropy_with_logits(netD(real), ones)
    lossD = lossD + F.binary_cross_entropy_with_logits(netD(fake), zeros)
    lossD.backward(retain_graph=True)
    optD.step()

    optG.zero_grad()
    lossG = F.binary_cross_entropy_with_logits(netD(fake), ones)
    lossG.backward()
    optG.step()
    print(f"[{it}] D {lossD.item():.3f} G {lossG.item():.3f}")
