"""TorchSim/torch-sim#590 (merged pull request)

Truth: completed states popped from the in-flight batcher keep `energy` with its grad_fn, so every
finished batch pins its whole forward graph until the end of `optimize`; memory grows per swap
until it is full.
Cure: detach the states when they are popped.
"""

# CAP=3000
import os
from dataclasses import dataclass, fields
import torch
import torch.nn as nn
import vramscope

CURE = bool(os.environ.get("CURE"))


@dataclass
class SimState:
    positions: torch.Tensor
    atomic_numbers: torch.Tensor
    energy: torch.Tensor
    forces: torch.Tensor

    def detach(self):
        return SimState(*(getattr(self, f.name).detach() for f in fields(self)))


class Interaction(nn.Module):
    def __init__(self, dim, n_rbf):
        super().__init__()
        self.radial = nn.Sequential(nn.Linear(n_rbf, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.update = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, h, rbf, src, dst):
        msg = h[src] * self.radial(rbf)
        agg = torch.zeros_like(h).index_add(0, dst, msg)
        return h + self.update(agg)


class UMAModel(nn.Module):
    def __init__(self, dim=128, n_rbf=64, layers=4):
        super().__init__()
        self.embed = nn.Embedding(100, dim)
        self.blocks = nn.ModuleList(Interaction(dim, n_rbf) for _ in range(layers))
        self.energy_head = nn.Linear(dim, 1)
        self.force_head = nn.Linear(dim, 3)
        self.register_buffer("centers", torch.linspace(0, 6, n_rbf))

    def forward(self, pos, z, src, dst):
        d = (pos[src] - pos[dst]).norm(dim=-1, keepdim=True)
        rbf = torch.exp(-((d - self.centers) ** 2))
        h = self.embed(z)
        for block in self.blocks:
            h = block(h, rbf, src, dst)
        return {"energy": self.energy_head(h).sum(), "forces": self.force_head(h).detach()}


class InFlightAutoBatcher:
    def __init__(self, n_swaps, atoms):
        self.n_swaps, self.atoms = n_swaps, atoms

    def next_batch(self, state, completed_states):
        if state is not None:
            completed_states.append(state.detach() if CURE else state)
        pos = torch.rand(self.atoms, 3, device="cuda")
        return pos, torch.ones(self.atoms, dtype=torch.long, device="cuda")


def optimize(model, batcher, fire_steps=3, neighbors=24):
    completed_states, state = [], None
    for swap in range(batcher.n_swaps):
        pos, z = batcher.next_batch(state, completed_states)
        src = torch.randint(0, len(z), (len(z) * neighbors,), device="cuda")
        dst = torch.randint(0, len(z), (len(z) * neighbors,), device="cuda")
        for step in range(fire_steps):
            out = model(pos, z, src, dst)
            pos = pos + 0.01 * out["forces"]
            state = SimState(pos, z, out["energy"], out["forces"])
    completed_states.append(state)
    return completed_states


with vramscope.record(os.environ["OUT"]):
    optimize(UMAModel().cuda(), InFlightAutoBatcher(n_swaps=10, atoms=1500))
