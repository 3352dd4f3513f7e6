"""Each token makes the keys and values of all layers again, while those before are held.

CURE=1 writes them to tensors of a fixed length.
"""

import os

import torch
from torch import nn

CURE = bool(os.environ.get("CURE"))
WIDTH, HEADS, LAYERS, PROMPT, TOKENS = 256, 4, 6, 700, 10


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in "qkv")
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden, keys, values, seen):
        batch, tokens, _ = hidden.shape
        heads = (part(hidden).view(batch, tokens, HEADS, -1) for part in self.project)
        query, key, value = (part.transpose(1, 2) for part in heads)
        if CURE:
            keys[:, :, seen : seen + tokens] = key
            values[:, :, seen : seen + tokens] = value
            key, value = keys[:, :, : seen + tokens], values[:, :, : seen + tokens]
        elif keys is not None:
            keys = key = torch.cat((keys, key), dim=-2)
            values = value = torch.cat((values, value), dim=-2)
        else:
            keys, values = key, value
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=tokens > 1)
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return hidden + mixed, (keys, values)


layers = nn.ModuleList(Layer() for _ in range(LAYERS)).cuda()
embed, head = nn.Embedding(500, WIDTH).cuda(), nn.Linear(WIDTH, 500).cuda()
prompts = torch.zeros(24, PROMPT, dtype=torch.long, device="cuda")
shape = (24, HEADS, PROMPT + TOKENS, WIDTH // HEADS)
memory = [(None, None)] * LAYERS
if CURE:
    memory = [tuple(torch.zeros(shape, device="cuda") for _ in "kv") for _ in layers]
with torch.inference_mode():
    seen, chosen = 0, prompts
    for _ in range(TOKENS):
        hidden, written = embed(chosen), []
        for layer, (keys, values) in zip(layers, memory, strict=True):
            hidden, kept = layer(hidden, keys, values, seen)
            written.append(kept)
        memory = written
        seen += chosen.shape[1]
        chosen = head(hidden[:, -1:]).argmax(-1)
