"""TransformerLensOrg/TransformerLens#479

Truth: every attention module registers its own boolean causal mask of n_ctx x n_ctx for the
maximum context, though prompts are short: layers * n_ctx^2 bytes held for nothing.
Cure: build the mask on the fly for the length of the prompt.
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            nn.Linear(cfg["d_model"], cfg["d_model"]) for _ in range(4)
        )
        if not CURE:
            causal_mask = torch.tril(torch.ones((cfg["n_ctx"], cfg["n_ctx"])).bool())
            self.register_buffer("mask", causal_mask)
        self.register_buffer("IGNORE", torch.tensor(-1e5))

    def apply_causal_mask(self, attn_scores):
        t = attn_scores.shape[-1]
        mask = (
            torch.ones((t, t), dtype=torch.bool, device=attn_scores.device).tril()
            if CURE
            else self.mask[:t, :t]
        )
        return torch.where(mask, attn_scores, self.IGNORE)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            w(x).view(b, t, self.cfg["n_heads"], -1).transpose(1, 2)
            for w in (self.W_Q, self.W_K, self.W_V)
        )
        attn_scores = self.apply_causal_mask(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5)
        pattern = F.softmax(attn_scores, dim=-1)
        return self.W_O((pattern @ v).transpose(1, 2).reshape(b, t, d)), pattern


class TransformerBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        d = cfg["d_model"]
        self.ln1, self.ln2, self.attn = nn.LayerNorm(d), nn.LayerNorm(d), Attention(cfg)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, resid, cache, name):
        out, pattern = self.attn(self.ln1(resid))
        cache[f"{name}.attn.hook_pattern"] = pattern
        resid = resid + out
        resid = resid + self.mlp(self.ln2(resid))
        cache[f"{name}.hook_resid_post"] = resid
        return resid


class HookedTransformer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed, self.unembed = (
            nn.Embedding(cfg["d_vocab"], cfg["d_model"]),
            nn.Linear(cfg["d_model"], cfg["d_vocab"]),
        )
        self.blocks = nn.ModuleList(TransformerBlock(cfg) for _ in range(cfg["n_layers"]))

    def run_with_cache(self, tokens):
        cache, resid = {}, self.embed(tokens)
        for i, block in enumerate(self.blocks):
            resid = block(resid, cache, f"blocks.{i}")
        return self.unembed(resid), cache


@torch.no_grad()
def main():
    cfg = dict(n_layers=16, d_model=512, n_heads=8, n_ctx=8192, d_vocab=32000)
    model = HookedTransformer(cfg).cuda().eval()
    for prompt in range(6):
        logits, cache = model.run_with_cache(torch.randint(0, 32000, (8, 256), device="cuda"))
        entropy = [
            (-(p * (p + 1e-9).log()).sum(-1)).mean().item()
            for n, p in cache.items()
            if n.endswith("pattern")
        ]


with vramscope.record(os.environ["OUT"]):
    main()
