"""atomistic-machine-learning/schnetpack#250 (cured by #261)

Truth: Atomwise computes the forces with create_graph=True in validation too, so a graph for a
second derivative is made there that nobody uses, and validation needs more than training.
Cure: create_graph=self.training.
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


def shifted_softplus(x):
    return F.softplus(x) - 0.6931


class CFConv(nn.Module):
    def __init__(self, n_filters, n_gaussians):
        super().__init__()
        self.filter_network = nn.ModuleList(
            [nn.Linear(n_gaussians, n_filters), nn.Linear(n_filters, n_filters)]
        )
        self.in2f = nn.Linear(n_filters, n_filters, bias=False)
        self.f2out = nn.Linear(n_filters, n_filters)

    def forward(self, x, f_ij, neighbors):
        W = self.filter_network[1](shifted_softplus(self.filter_network[0](f_ij)))
        y = self.in2f(x)
        nbh = neighbors.reshape(neighbors.shape[0], -1, 1).expand(-1, -1, y.shape[2])
        y = torch.gather(y, 1, nbh).view(*neighbors.shape, -1)
        return self.f2out((y * W).sum(2))


class SchNet(nn.Module):
    def __init__(self, n_atom_basis=128, n_interactions=3, n_gaussians=25):
        super().__init__()
        self.embedding = nn.Embedding(100, n_atom_basis)
        self.interactions = nn.ModuleList(
            CFConv(n_atom_basis, n_gaussians) for _ in range(n_interactions)
        )
        self.register_buffer("offsets", torch.linspace(0, 5, n_gaussians))

    def forward(self, inputs):
        pos, neighbors = inputs["_positions"], inputs["_neighbors"]
        x = self.embedding(inputs["_atomic_numbers"])
        idx = neighbors.reshape(pos.shape[0], -1, 1).expand(-1, -1, 3)
        r_ij = (torch.gather(pos, 1, idx).view(*neighbors.shape, 3) - pos[:, :, None]).norm(dim=-1)
        f_ij = torch.exp(-10 * (r_ij[..., None] - self.offsets) ** 2)
        for interaction in self.interactions:
            x = x + interaction(x, f_ij, neighbors)
        return x


class Atomwise(nn.Module):
    def __init__(self, n_in=128):
        super().__init__()
        self.out_net = nn.Sequential(nn.Linear(n_in, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, inputs, representation):
        y = self.out_net(representation).sum(1)
        graph = self.training if CURE else True
        dy = torch.autograd.grad(y, inputs["_positions"], torch.ones_like(y), create_graph=graph)
        return {"energy": y, "forces": -dy[0]}


class AtomisticModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.representation, self.output_modules = SchNet(), Atomwise()

    def forward(self, inputs):
        inputs["_positions"].requires_grad_()
        return self.output_modules(inputs, self.representation(inputs))


def loader(batches, batch_size, atoms=60, neighbors=40):
    for _ in range(batches):
        yield {
            "_positions": torch.rand(batch_size, atoms, 3).cuda(),
            "_atomic_numbers": torch.ones(batch_size, atoms, dtype=torch.long).cuda(),
            "_neighbors": torch.zeros(batch_size, atoms, neighbors, dtype=torch.long).cuda(),
            "energy": torch.rand(batch_size, 1).cuda(),
            "forces": torch.rand(batch_size, atoms, 3).cuda(),
        }


def loss_fn(batch, result):
    return sum(F.mse_loss(result[name], batch[name]) for name in ("energy", "forces"))


def train(model, optimizer, n_epochs=2):
    for _ in range(n_epochs):
        model.train()
        for batch in loader(4, 20):
            optimizer.zero_grad()
            loss = loss_fn(batch, model(batch))
            loss.backward()
            optimizer.step()
        model.eval()
        val_loss = 0.0
        for val_batch in loader(4, 40):
            val_result = model(val_batch)
            val_loss += loss_fn(val_batch, val_result).detach().cpu().numpy()


with vramscope.record(os.environ["OUT"]):
    model = AtomisticModel().cuda()
    train(model, torch.optim.Adam(model.parameters(), lr=1e-4))
