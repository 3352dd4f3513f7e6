import torch
from torch import nn


class EdgeConv(nn.Module):
    def __init__(self, node_dim, edge_dim, hidden):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * node_dim + edge_dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.update = nn.Linear(node_dim + hidden, node_dim)

    def forward(self, x, edge_index, edge_attr):
        src, dst = edge_index
        first = self.message[0]
        ws, wd, we = first.weight.split([x.size(1), x.size(1), edge_attr.size(1)], dim=1)
        m = self.message[1:]((x @ ws.T)[src] + (x @ wd.T)[dst] + edge_attr @ we.T + first.bias)
        agg = torch.zeros(x.size(0), m.size(1), device=x.device).index_add(0, dst, m)
        return x + self.update(torch.cat([x, agg], dim=-1))


class MPNN(nn.Module):
    def __init__(self, atoms=100, node_dim=256, edge_dim=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(atoms, node_dim)
        self.convs = nn.ModuleList(EdgeConv(node_dim, edge_dim, 32) for _ in range(layers))
        self.energy = nn.Linear(node_dim, 1)

    def forward(self, z, edge_index, edge_attr):
        x = self.embed(z)
        for conv in self.convs:
            x = conv(x, edge_index, edge_attr).relu()
        return self.energy(x).sum()


def random_graph(nodes=6000, edges=240_000):
    return torch.randint(100, (nodes,)), torch.randint(nodes, (2, edges)), torch.rand(edges, 16)


device = "cuda"
model = MPNN().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
for epoch in range(4):
    z, edge_index, edge_attr = (t.to(device) for t in random_graph())
    loss = (model(z, edge_index, edge_attr) / 6000 - 1.0).abs()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} MAE {loss.item():.4f}")
