"""yenchenlin/nerf-pytorch#23

Truth: by default the code copies all training data (every ray of every image, and the images) to
the GPU, so a finer image factor runs out of memory though the batch of rays is the same.
Cure: keep the rays on the host and load only the batch's rays onto the GPU.
"""

# CAP=3900
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))
device = torch.device("cuda")


class NeRF(nn.Module):
    def __init__(self, D=8, W=256, input_ch=63, input_ch_views=27, skips=(4,)):
        super().__init__()
        self.skips = skips
        self.pts_linears = nn.ModuleList(
            [nn.Linear(input_ch, W)]
            + [nn.Linear(W + input_ch if i in skips else W, W) for i in range(D - 1)]
        )
        self.feature_linear, self.alpha_linear = nn.Linear(W, W), nn.Linear(W, 1)
        self.views_linears, self.rgb_linear = (
            nn.Linear(W + input_ch_views, W // 2),
            nn.Linear(W // 2, 3),
        )

    def forward(self, pts, views):
        h = pts
        for i, l in enumerate(self.pts_linears):
            h = F.relu(l(h))
            if i in self.skips:
                h = torch.cat([pts, h], -1)
        h2 = F.relu(self.views_linears(torch.cat([self.feature_linear(h), views], -1)))
        return torch.cat([self.rgb_linear(h2), self.alpha_linear(h)], -1)


def embed(x, L):
    return torch.cat([x] + [f(x * 2.0**i) for i in range(L) for f in (torch.sin, torch.cos)], -1)


def raw2outputs(raw, z_vals):
    alpha = 1.0 - torch.exp(
        -F.relu(raw[..., 3]) * F.pad(z_vals[:, 1:] - z_vals[:, :-1], (0, 1), value=1e10)
    )
    weights = (
        alpha
        * torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1.0 - alpha + 1e-10], -1), -1)[
            :, :-1
        ]
    )
    return (weights[..., None] * torch.sigmoid(raw[..., :3])).sum(-2), weights


def render(rays_o, rays_d, coarse, fine, N_samples=64, N_importance=64):
    outs = []
    for net, n in ((coarse, N_samples), (fine, N_samples + N_importance)):
        z_vals = torch.linspace(0, 1, n, device=device).expand(len(rays_o), n)
        pts = rays_o[:, None] + rays_d[:, None] * z_vals[..., None]
        views = embed(F.normalize(rays_d, dim=-1), 4)[:, None].expand(-1, n, -1)
        outs.append(raw2outputs(net(embed(pts, 10), views), z_vals)[0])
    return outs


def train(images, rays_rgb, N_rand=1024, N_iters=6):
    coarse, fine = NeRF().to(device), NeRF().to(device)
    optimizer = torch.optim.Adam([*coarse.parameters(), *fine.parameters()], lr=5e-4)
    images, rays_rgb = torch.Tensor(images), torch.Tensor(rays_rgb)
    if not CURE:
        images, rays_rgb = images.to(device), rays_rgb.to(device)
    for i in range(N_iters):
        batch = rays_rgb[i * N_rand : (i + 1) * N_rand].to(device).transpose(0, 1)
        rays_o, rays_d, target_s = batch[0], batch[1], batch[2]
        rgb0, rgb = render(rays_o, rays_d, coarse, fine)
        optimizer.zero_grad()
        loss = F.mse_loss(rgb, target_s) + F.mse_loss(rgb0, target_s)
        loss.backward()
        optimizer.step()


with vramscope.record(os.environ["OUT"]):
    H, W, N = 756, 1008, 40
    images = np.zeros((N, H, W, 3), np.float32)
    rays_rgb = np.zeros((N * H * W, 3, 3), np.float32)
    train(images, rays_rgb)
