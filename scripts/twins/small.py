"""A small training program. `snippets.py` makes edits where a line says so."""

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

vocabulary, width, layers, heads = 6000, 256, 4, 4
length, batch_size, lr = 160, 8, 1e-3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        y = F.softmax(scores.masked_fill(mask, float("-inf")), -1) @ v  # edit: attention
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, inputs, targets, keep=False):
        x, head, target = self.embedding(inputs), self.head, targets.flatten()
        for i, block in enumerate(self.blocks):
            x = block(x)  # edit: checkpoint
        hidden = self.norm(x).flatten(0, 1)
        logits = head(hidden)  # edit: head
        loss = F.cross_entropy(logits, target)  # edit: loss
        return (loss, logits) if keep else loss


tokens = torch.randint(vocabulary, (64, length + 1))  # edit: data
dataset = TensorDataset(tokens[:, :-1], tokens[:, 1:])
loader = DataLoader(dataset, batch_size=batch_size)  # edit: loader
eval_loader = DataLoader(dataset, batch_size=batch_size)  # edit: eval_loader
model = Model().cuda()  # edit: model
optimizer = torch.optim.AdamW(model.parameters(), lr=lr)  # edit: optimizer
for step, (inputs, targets) in zip(range(4), loader):
    inputs, targets = inputs.cuda(), targets.cuda()
    optimizer.zero_grad()  # edit: zero_grad
    loss = model(inputs, targets)  # edit: forward
    loss.backward()  # edit: backward
    optimizer.step()  # edit: step
    if step % 2 == 1:  # edit: eval
        inputs, targets = (x.cuda() for x in next(iter(eval_loader)))  # edit: eval
        loss = model(inputs, targets)  # edit: eval
