import torch
from torch import nn
import torch.nn.functional as F


class Decoder(nn.Module):
    def __init__(self, vocab=8000, dim=512, layers=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, token, cache):
        x = self.embed(token)
        new_cache = []
        for layer, (k, v) in zip(self.qkv, cache):
            q, k1, v1 = layer(x).chunk(3, dim=-1)
            k, v = torch.cat([k, k1], 1), torch.cat([v, v1], 1)
            new_cache.append((k, v))
            x = x + (q @ k.transpose(1, 2) / 22.6).softmax(-1) @ v
        return F.log_softmax(self.head(x[:, -1]), dim=-1), new_cache


@torch.no_grad()
def beam_search(model, prefix, width=6, steps=24):
    start = [(torch.randn(8, prefix, 512, device="cuda"), torch.randn(8, prefix, 512, device="cuda")) for _ in model.qkv]
    beams = [(0.0, [torch.zeros(8, 1, dtype=torch.long, device="cuda")], start)]
    for _ in range(steps):
        candidates = []
        for score, tokens, cache in beams:
            logp, cache = model(tokens[-1], cache)
            values, indices = logp.topk(width, dim=-1)
            for i in range(width):
                branch = [(k.clone(), v.clone()) for k, v in cache]
                candidates.append((score + values[:, i].sum().item(), tokens + [indices[:, i : i + 1]], branch))
        beams = sorted(candidates, key=lambda c: -c[0])[:width]
    return beams[0]


score, tokens, _ = beam_search(Decoder().cuda(), prefix=128)
print("best", score, len(tokens), "tokens")
