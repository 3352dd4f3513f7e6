import torch
from torch import nn
import torch.nn.functional as F

N, E, FEATS, CLASSES = 10_000, 60_000, 128, 12


def normalized_adjacency(edges):
    loops = torch.arange(N, device="cuda").expand(2, -1)
    src, dst = torch.cat([edges, edges.flip(0), loops], dim=1)
    d = torch.zeros(N, device="cuda").index_add_(0, dst, torch.ones(len(dst), device="cuda")).rsqrt()
    return src, dst, (d[src] * d[dst])[:, None]


class GCN(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.w1 = nn.Linear(FEATS, hidden, bias=False)
        self.w2 = nn.Linear(hidden, CLASSES, bias=False)

    def forward(self, x, a):
        src, dst, w = a
        h = self.w1(x)
        x = F.relu(torch.zeros_like(h).index_add(0, dst, w * h[src]))
        h = self.w2(F.dropout(x, 0.5, self.training))
        return torch.zeros_like(h).index_add(0, dst, w * h[src])


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
