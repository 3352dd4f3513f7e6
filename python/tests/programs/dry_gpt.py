"""Trains a GPT of 124 million parameters, with one change. Prints its peaks in bytes, as JSON.

An NVIDIA H100 has run a program with these layers and sizes, in this order: the peaks are those of
``test_data/dry/h100.json``.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, LAYERS, HEADS, TOKENS = 50304, 768, 12, 12, 1024


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.qkv(x).split(width, dim=2)
        q, k, v = (p.view(batch, tokens, HEADS, width // HEADS).transpose(1, 2) for p in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(batch, tokens, width)
        return self.project(y)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.up(x)
        x = functional.gelu(x)
        return self.down(x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.before_mlp = nn.LayerNorm(WIDTH)
        self.mlp = Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before_attention(x))
        x = x + self.mlp(self.before_mlp(x))
        return x


class Gpt(nn.Module):
    def __init__(self, is_checkpointed: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        self.is_checkpointed = is_checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.size(1), device=x.device)
        x = self.tokens(x) + self.places(places)
        for block in self.blocks:
            if self.is_checkpointed:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x))


def forward(model: Gpt, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    logits = model(x)
    return logits, functional.cross_entropy(logits.view(-1, VOCABULARY), y.view(-1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--no-foreach", action="store_true")
    options = parser.parse_args()
    with torch.device("cuda"):
        model = Gpt(options.checkpoint)
    parameters = list(model.parameters())
    foreach = {"foreach": False} if options.no_foreach else {}
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, **foreach)
    size = options.batch // options.accumulate
    for _ in range(options.steps):
        for _ in range(options.accumulate):
            x = torch.randint(0, VOCABULARY, (size, TOKENS)).to("cuda")
            y = torch.randint(0, VOCABULARY, (size, TOKENS)).to("cuda")
            with torch.autocast("cuda", torch.bfloat16):
                # The logits of the pass before live until these are there.
                logits, loss = forward(model, x, y)
            if options.accumulate > 1:
                loss = loss / options.accumulate
            loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    del logits
    stats = torch.cuda.memory_stats()
    names = ("active", "reserved")
    print(json.dumps({name: stats[f"{name}_bytes.all.peak"] for name in names}))


if __name__ == "__main__":
    main()
