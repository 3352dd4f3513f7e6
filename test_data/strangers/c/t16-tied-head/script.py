import copy

import torch
from torch import nn
import torch.nn.functional as F


class MeanMixerLM(nn.Module):
    def __init__(self, vocab=50_257, dim=448):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.mix = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(3))
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.lm_head.weight = self.wte.weight  # https://arxiv.org/abs/1608.05859

    def forward(self, ids):
        h = self.wte(ids)
        for layer in self.mix:
            h = h + layer(h.cumsum(1) / torch.arange(1, h.size(1) + 1, device=h.device)[:, None])
        return self.lm_head(h)


def init_weights(model, std=0.02):
    model.wte = copy.deepcopy(model.wte)
    nn.init.normal_(model.wte.weight, std=std)
    for name, p in model.named_parameters():
        if p.dim() == 1:
            nn.init.zeros_(p) if "bias" in name else nn.init.ones_(p)
    return model


model = init_weights(MeanMixerLM()).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
for iteration in range(6):
    batch = torch.randint(0, 50_257, (2, 65), device="cuda")
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), batch[:, 1:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"iter {iteration} loss {loss.item():.4f}")
