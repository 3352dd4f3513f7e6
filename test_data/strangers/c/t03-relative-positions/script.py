import math

import torch
from torch import nn


class RelativeAttention(nn.Module):
    def __init__(self, dim, heads, max_distance=128):
        super().__init__()
        self.heads, self.max_distance = heads, max_distance
        self.to_qkv = nn.Linear(dim, dim * 3)
        self.rel_keys = nn.Embedding(2 * max_distance + 1, dim // heads)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, dim = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        offsets = torch.arange(n, device=x.device)
        offsets = (offsets[None] - offsets[:, None]).clamp(-self.max_distance, self.max_distance)
        rel = self.rel_keys(offsets + self.max_distance)
        scores = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, rel)
        attn = torch.softmax(scores / math.sqrt(dim // self.heads), dim=-1)
        return self.out((attn @ v).transpose(1, 2).reshape(b, n, dim))


class Tagger(nn.Module):
    def __init__(self, dim=256, heads=2, depth=3, tags=9):
        super().__init__()
        self.layers = nn.ModuleList(RelativeAttention(dim, heads) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.head = nn.Linear(dim, tags)

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers):
            x = x + layer(norm(x))
        return self.head(x)


tagger = Tagger().to("cuda")
optim = torch.optim.Adam(tagger.parameters(), 1e-4)
for i in range(5):
    words, tags = torch.randn(2, 640, 256, device="cuda"), torch.randint(0, 9, (2, 640), device="cuda")
    loss = nn.functional.cross_entropy(tagger(words).flatten(0, 1), tags.flatten())
    optim.zero_grad(); loss.backward(); optim.step(); print(i, float(loss))
