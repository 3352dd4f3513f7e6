import torch
from torch import nn
import torch.nn.functional as F

N, E, FEATS, CLASSES = 10_000, 60_000, 128, 12


def normalized_adjacency(edges):
    adj = torch.zeros(N, N, device="cuda")
    adj[edges[0], edges[1]] = 1.0
    adj[edges[1], edges[0]] = 1.0
    adj = adj + torch.eye(N, device="cuda")
    d = adj.sum(dim=1).rsqrt()
    return d[:, None] * adj * d[None, :]


class GCN(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.w1 = nn.Linear(FEATS, hidden, bias=False)
        self.w2 = nn.Linear(hidden, CLASSES, bias=False)

    def forward(self, x, a):
        x = F.relu(a @ self.w1(x))
        return a @ self.w2(F.dropout(x, 0.5, self.training))


edges = torch.randint(0, N, (2, E)).cuda()
a_hat = normalized_adjacency(edges)
x = torch.randn(N, FEATS).cuda()
y = torch.randint(0, CLASSES, (N,)).cuda()
gcn = GCN().cuda()
optimizer = torch.optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
train_rows = torch.arange(0, N, 5).cuda()
for epoch in range(30):
    gcn.train()
    out = gcn(x, a_hat)
    loss = F.cross_entropy(out[train_rows], y[train_rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
