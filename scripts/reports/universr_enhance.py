"""woongzip1/UniverSR#9

Truth: odeint gives the whole trajectory [N, B, C, H, W] and simulate returns xs[-1], a view, so
every enhanced spectrogram that is kept holds the storage of all N steps of its trajectory.
Cure: return xs[-1].clone().
"""

# CAP=1500
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


def odeint(func, y0, t):
    solution = torch.empty(len(t), *y0.shape, dtype=y0.dtype, device=y0.device)
    solution[0] = y0
    y = y0
    for i in range(1, len(t)):
        dt = 1.0 / (len(t) - 1)
        k1 = func(t[i - 1], y)
        y = y + dt * func(t[i - 1] + dt / 2, y + k1 * dt / 2)
        solution[i] = y
    return solution


class ConvNeXtBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.pwconv1, self.pwconv2 = nn.Conv2d(dim, 2 * dim, 1), nn.Conv2d(2 * dim, dim, 1)

    def forward(self, x):
        return x + self.pwconv2(F.gelu(self.pwconv1(self.dwconv(x))))


class VectorField(nn.Module):
    def __init__(self, dim=8, depth=3):
        super().__init__()
        self.proj_in, self.proj_out = nn.Conv2d(4, dim, 3, 1, 1), nn.Conv2d(dim, 2, 3, 1, 1)
        self.blocks = nn.ModuleList(ConvNeXtBlock(dim) for _ in range(depth))

    def forward(self, t, x, cond):
        h = self.proj_in(torch.cat([x, cond], 1)) + t
        for block in self.blocks:
            h = block(h)
        return self.proj_out(h)


class TorchDiffeqSolver:
    def __init__(self, model, num_steps=16):
        self.model, self.num_steps = model, num_steps

    def simulate(self, x, cond):
        ts = torch.linspace(0, 1, self.num_steps + 1).to(x.device)
        xs = odeint(lambda t, y: self.model(t, y, cond), x, ts)
        return xs[-1].clone() if CURE else xs[-1]


class UniverSR:
    def __init__(self):
        self.vector_field = VectorField().cuda().eval()
        self.solver = TorchDiffeqSolver(self.vector_field)

    @torch.no_grad()
    def enhance(self, wav):
        frames = wav.cuda().unfold(-1, 1024, 512)
        spec = torch.stack([frames[..., ::2], frames[..., 1::2]], 1).transpose(2, 3)
        return self.solver.simulate(torch.randn_like(spec), spec.contiguous())


with vramscope.record(os.environ["OUT"]):
    model = UniverSR()
    enhanced = {}
    for i, seconds in enumerate([15, 18, 16, 20, 17, 15, 19, 16, 18, 20]):
        enhanced[f"clip{i:04d}"] = model.enhance(torch.randn(1, 48000 * seconds))
    for name, spec in enhanced.items():
        torch.save(spec.cpu(), os.devnull)
