"""Steps that hold memory after its last use. The second argument `del` drops it there."""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

case = sys.argv[1]
drops = sys.argv[2:] == ["del"]
HIDDEN, TOKENS, WORDS, LAYERS, HEADS = 256, 1024, 8192, 4, 4
inputs = torch.randint(WORDS, (TOKENS,), device="cuda")


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.scores = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inner(x).view(TOKENS, HEADS, -1).transpose(0, 1).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2)  # attention
        weights = scores.softmax(-1)
        if case == "attention" and not drops:
            self.scores = scores
        return x + self.outer((weights @ v).transpose(0, 1).reshape(TOKENS, HIDDEN))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embedding(words)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)  # logits


class Kept:
    copy = wide = batch = previous = None


model = Model().cuda()
if case == "copies":
    model = model.bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
kept = Kept()


def train() -> None:
    if case == "buffer":
        late = torch.zeros(6 << 20, device="cuda")  # early
        kept.batch = torch.randn(8 << 20, device="cuda")  # buffer
        kept.batch.mean()
        if drops:
            kept.batch = None
    optimizer.zero_grad(set_to_none=True)
    logits = model(inputs)
    if case == "copies":
        kept.wide = logits.float()  # wide
        kept.copy = kept.wide.clone()  # copy
        if drops:
            kept.copy = None
            del logits
        loss = cross_entropy(kept.wide, inputs)
        if drops:
            kept.wide = None
    elif case == "output":
        # What the step before has kept lives on until this one ends.
        output = logits.detach().clone()  # output
        if drops:
            output = None
        loss = cross_entropy(logits, inputs)
        del logits
    else:
        loss = cross_entropy(logits, inputs)
        if case != "logits" or drops:
            del logits
    loss.backward()
    if case == "output" and not drops:
        kept.previous = output
    if case == "buffer":
        late.mean()
    optimizer.step()
    if case == "logits" and not drops:
        kept.previous = logits


for _ in range(4):
    train()
