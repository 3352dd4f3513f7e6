import copy

import torch
from torch import nn
from torch.nn import functional as F


class MLPMixer(nn.Module):
    def __init__(self, tokens=64, dim=512, depth=8):
        super().__init__()
        self.patch = nn.Linear(48, dim)
        self.token_mlps = nn.ModuleList(nn.Sequential(nn.Linear(tokens, 256), nn.GELU(), nn.Linear(256, tokens)) for _ in range(depth))
        self.channel_mlps = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2048), nn.GELU(), nn.Linear(2048, dim)) for _ in range(depth))
        self.head = nn.Linear(dim, 100)

    def forward(self, x):
        x = self.patch(x)
        for tokens, channels in zip(self.token_mlps, self.channel_mlps):
            x = x + tokens(x.transpose(1, 2)).transpose(1, 2)
            x = x + channels(x)
        return self.head(x.mean(1))


class EMATracker:
    def __init__(self, model, decays):
        self.models = {d: copy.deepcopy(model).eval() for d in decays}

    @torch.no_grad()
    def update(self, model):
        for decay, average in self.models.items():
            for a, p in zip(average.parameters(), model.parameters()):
                a.lerp_(p, 1 - decay)


net = MLPMixer().cuda()
ema = EMATracker(net, decays=(0.999,))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(15):
    patches, labels = torch.randn(16, 64, 48).cuda(), torch.randint(100, (16,)).cuda()
    loss = F.cross_entropy(net(patches), labels)
    opt.zero_grad(), loss.backward(), opt.step()
    ema.update(net)
with torch.no_grad():
    print({d: m(patches).argmax(-1).eq(labels).float().mean().item() for d, m in ema.models.items()})
