import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out, emb_dim):
        super().__init__()
        self.norm1 = nn.GroupNorm(32, c_in)
        self.conv1 = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.emb = nn.Linear(emb_dim, c_out)
        self.norm2 = nn.GroupNorm(32, c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1)
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(F.silu(emb))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class UNet(nn.Module):
    def __init__(self, in_ch=3, base=96, mults=(1, 2, 4), n_res=2):
        super().__init__()
        emb_dim = base * 4
        self.base = base
        self.time_mlp = nn.Sequential(nn.Linear(base, emb_dim), nn.SiLU(),
                                      nn.Linear(emb_dim, emb_dim))
        self.conv_in = nn.Conv2d(in_ch, base, 3, padding=1)
        self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
        chs, c = [base], base
        for i, m in enumerate(mults):
            for _ in range(n_res):
                self.downs.append(ResBlock(c, base * m, emb_dim))
                c = base * m
                chs.append(c)
            if i < len(mults) - 1:
                self.downs.append(nn.Conv2d(c, c, 3, stride=2, padding=1))
                chs.append(c)
        self.mid1 = ResBlock(c, c, emb_dim)
        self.mid2 = ResBlock(c, c, emb_dim)
        for i, m in reversed(list(enumerate(mults))):
            for _ in range(n_res + 1):
                self.ups.append(ResBlock(c + chs.pop(), base * m, emb_dim))
                c = base * m
            if i > 0:
                self.ups.append(nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"),
                                              nn.Conv2d(c, c, 3, padding=1)))
        self.norm_out = nn.GroupNorm(32, c)
        self.conv_out = nn.Conv2d(c, in_ch, 3, padding=1)

    def forward(self, x, t):
        emb = self.time_mlp(timestep_embedding(t, self.base))
        h = self.conv_in(x)
        hs = [h]
        for layer in self.downs:
            h = layer(h, emb) if isinstance(layer, ResBlock) else layer(h)
            hs.append(h)
        h = self.mid2(self.mid1(h, emb), emb)
        for layer in self.ups:
            if isinstance(layer, ResBlock):
                h = layer(torch.cat([h, hs.pop()], dim=1), emb)
            else:
                h = layer(h)
        return self.conv_out(F.silu(self.norm_out(h)))
