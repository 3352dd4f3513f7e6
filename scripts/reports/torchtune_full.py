"""meta-pytorch/torchtune#389

Truth: AdamW's default foreach implementation makes intermediates as large as all parameters in
optimizer.step(), beside weights, gradients and both moments: the peak is in the optimizer step.
Cure: AdamW(..., foreach=False).
"""

# CAP=3900
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
import vramscope

CURE = bool(os.environ.get("CURE"))


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale


class TransformerDecoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.heads, self.sa_norm, self.mlp_norm = heads, RMSNorm(dim), RMSNorm(dim)
        self.qkv_proj, self.output_proj = (
            nn.Linear(dim, 3 * dim, bias=False),
            nn.Linear(dim, dim, bias=False),
        )
        self.w1, self.w2, self.w3 = (
            nn.Linear(dim, hidden, bias=False),
            nn.Linear(hidden, dim, bias=False),
            nn.Linear(dim, hidden, bias=False),
        )

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            self.qkv_proj(self.sa_norm(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        )
        h = x + self.output_proj(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        )
        y = self.mlp_norm(h)
        return h + self.w2(F.silu(self.w1(y)) * self.w3(y))


class TransformerDecoder(nn.Module):
    def __init__(self, vocab=16000, dim=2048, layers=6, heads=16, hidden=5504):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            TransformerDecoderLayer(dim, heads, hidden) for _ in range(layers)
        )
        self.norm, self.output = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = checkpoint(layer, h, use_reentrant=False)
        return self.output(self.norm(h))


class FullFinetuneRecipe:
    def setup(self):
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            self._model = TransformerDecoder()
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=2e-5, foreach=False if CURE else None
        )

    def train(self, steps):
        for _ in range(steps):
            tokens = torch.randint(0, 16000, (2, 512), device="cuda")
            self._optimizer.zero_grad(set_to_none=True)
            logits = self._model(tokens)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            self._optimizer.step()


with vramscope.record(os.environ["OUT"]):
    recipe = FullFinetuneRecipe()
    recipe.setup()
    recipe.train(5)
