"""pyg-team/pytorch_geometric#459

Truth: the message of GCNConv is built for every edge: x[edge_index[0]] and norm * x_j are [edges,
200] tensors, many times the size of the node features, and x_j is kept for backward.
Cure: adjacency as a sparse tensor, torch.matmul(adj, torch.matmul(x, weight)).
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, adj, x):
        ctx.adj = adj
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        return None, torch.empty_like(grad)


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.empty(in_channels, out_channels)),
            nn.Parameter(torch.zeros(out_channels)),
        )
        nn.init.xavier_uniform_(self.weight)

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j

    def propagate(self, edge_index, x, norm):
        out = self.message(x[edge_index[0]], norm)
        return torch.zeros_like(x).index_add(0, edge_index[1], out)

    def forward(self, x, edge_index, edge_weight, adj=None):
        x = torch.matmul(x, self.weight)
        if adj is not None:
            return SpMM.apply(adj, x) + self.bias
        return self.propagate(edge_index, x, edge_weight) + self.bias


class TextGCN(nn.Module):
    def __init__(self, num_nodes, hidden=200, classes=20):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(num_nodes, hidden))
        self.conv1, self.conv2, self.conv3 = (
            GCNConv(hidden, hidden),
            GCNConv(hidden, hidden),
            GCNConv(hidden, classes),
        )

    def forward(self, edge_index, norm, adj):
        x = F.dropout(F.relu(self.conv1(self.embedding, edge_index, norm, adj)), 0.5)
        x = F.dropout(F.relu(self.conv2(x, edge_index, norm, adj)), 0.5)
        return self.conv3(x, edge_index, norm, adj)


def main(num_nodes=14049, num_edges=900_000):
    edge_index = torch.zeros(2, num_edges, dtype=torch.long).cuda()
    norm = torch.ones(num_edges).cuda()
    adj = (edge_index, norm) if CURE else None
    model = TextGCN(num_nodes).cuda()
    y, optimizer = (
        torch.zeros(num_nodes, dtype=torch.long).cuda(),
        torch.optim.Adam(model.parameters(), lr=0.02),
    )
    for epoch in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(edge_index, norm, adj), y).backward()
        optimizer.step()


with vramscope.record(os.environ["OUT"]):
    main()
