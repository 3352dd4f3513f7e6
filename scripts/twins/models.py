"""Small models of many kinds. Each returns its logits and its loss.

An option of `o` changes how a model computes: `checkpoint` (all or half of the blocks), `chunks`
(of the loss), `flash` (attention without maps).
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def chunk_loss(hidden, weight, target):
    """Returns the sum of the losses of a few tokens."""
    return F.cross_entropy((hidden @ weight.t()).float(), target, reduction="sum")


class Net(nn.Module):
    """A model that runs blocks, each under checkpointing or not."""

    def __init__(self, o):
        super().__init__()
        self.o = o

    def run(self, i, block, *args):
        """Runs the block of number `i`."""
        if self.o.checkpoint == "all" or (self.o.checkpoint == "half" and i % 2 == 0):
            return checkpoint(block, *args, use_reentrant=False)
        return block(*args)

    def token_loss(self, hidden, head, target):
        """Returns the logits of all tokens, and their mean loss."""
        hidden, target = hidden.flatten(0, 1), target.flatten()
        if self.o.chunks == 1:
            logits = head(hidden)
            return logits, F.cross_entropy(logits, target)
        total = 0
        for h, t in zip(hidden.chunk(self.o.chunks), target.chunk(self.o.chunks)):
            total = total + checkpoint(chunk_loss, h, head.weight, t, use_reentrant=False)
        return None, total / target.numel()


class Attention(nn.Module):
    """Attention of `x` to itself, or to `memory`."""

    def __init__(self, o, width, heads, causal=False):
        super().__init__()
        self.o, self.heads, self.causal = o, heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        q, k, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
        if self.o.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            if self.causal:
                rows, columns = scores.shape[-2:]
                mask = torch.ones(rows, columns, dtype=torch.bool, device=x.device).triu(1)
                scores = scores.masked_fill(mask, float("-inf"))
                # A method leaves no frame of its own in a call stack, a function does.
                y = scores.softmax(-1) @ v
            else:
                y = F.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Two layers with a GELU between."""

    def __init__(self, width, inner, dropout=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down(F.gelu(self.up(x))))


class Block(nn.Module):
    """A block of a transformer, norm first."""

    def __init__(self, o, width, heads, causal=False, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(o, width, heads, causal)
        self.mlp = MLP(width, 4 * width, dropout)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(Net):
    """Predicts the next token."""

    vocabulary, width, layers, heads, length, batch = 6000, 256, 6, 4, 192, 6

    def __init__(self, o):
        super().__init__(o)
        self.embedding = nn.Embedding(self.vocabulary, self.width)
        self.position = nn.Embedding(4 * self.length, self.width)
        self.blocks = nn.ModuleList(self.block() for _ in range(self.layers))
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.vocabulary, bias=False)

    def block(self):
        return Block(self.o, self.width, self.heads, causal=True)

    @classmethod
    def inputs(cls, batch, sequence):
        tokens = torch.randint(cls.vocabulary, (batch, int(cls.length * sequence) + 1)).cuda()
        return tokens[:, :-1], tokens[:, 1:]

    def forward(self, tokens, target):
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device="cuda"))
        for i, block in enumerate(self.blocks):
            x = self.run(i, block, x)
        return self.token_loss(self.norm(x), self.head, target)


class Experts(nn.Module):
    """Eight experts. Each token goes to two of them, each expert takes a fixed number of tokens."""

    def __init__(self, width, inner, experts=8, chosen=2):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(MLP(width, inner) for _ in range(experts))
        self.chosen = chosen

    def forward(self, x):
        flat = x.flatten(0, 1)
        weight, expert = self.router(flat).softmax(-1).topk(self.chosen, -1)
        order = expert.flatten().argsort()
        share = order.numel() // len(self.experts)
        y = torch.zeros_like(flat)
        for i, mlp in enumerate(self.experts):
            slots = order[i * share : (i + 1) * share]
            token = slots // self.chosen
            part = mlp(flat[token]) * weight.flatten()[slots, None]
            y = y.index_add(0, token, part.to(y.dtype))
        return y.view_as(x)


class MoEBlock(nn.Module):
    """A block with experts in place of the two layers."""

    def __init__(self, o, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(o, width, heads, causal=True)
        self.experts = Experts(width, 2 * width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.experts(self.norm2(x))


class MoE(GPT):
    """A mixture of experts."""

    vocabulary, width, layers, heads, length, batch = 5000, 192, 4, 6, 160, 8

    def block(self):
        return MoEBlock(self.o, self.width, self.heads)


class ViT(Net):
    """Classifies images by their patches, a class token and four registers."""

    width, layers, heads, patch, side, batch, classes = 192, 5, 6, 8, 96, 10, 1000

    def __init__(self, o):
        super().__init__(o)
        self.embedding = nn.Linear(3 * self.patch**2, self.width)
        self.extra = nn.Parameter(torch.zeros(1, 5, self.width))
        self.position = nn.Parameter(torch.zeros(1, 4 * (self.side // self.patch) ** 2, self.width))
        self.blocks = nn.ModuleList(
            Block(o, self.width, self.heads, dropout=0.1) for _ in range(self.layers)
        )
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.classes)

    @classmethod
    def inputs(cls, batch, sequence):
        images = torch.rand(batch, 3, cls.side, int(cls.side * sequence)).cuda()
        return images, torch.randint(cls.classes, (batch,)).cuda()

    def forward(self, images, target):
        patches = images.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        x = self.embedding(patches.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))
        x = x + self.position[:, : x.shape[1]]
        x = torch.cat([self.extra.expand(len(x), -1, -1), x], 1)
        for i, block in enumerate(self.blocks):
            x = self.run(i, block, x)
        logits = self.head(self.norm(x)[:, 0])
        return logits, F.cross_entropy(logits, target, label_smoothing=0.1)


class ScanBlock(nn.Module):
    """A selective state space. Its state goes from token to token in a Python loop."""

    def __init__(self, width, inner, states):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 2 * inner), nn.Linear(inner, width)
        self.select = nn.Linear(inner, 2 * states + 1)
        self.decay = nn.Parameter(torch.ones(inner, states))
        self.states = states

    def forward(self, x):
        u, gate = self.into(self.norm(x)).chunk(2, -1)
        step, b, c = self.select(u).split([1, self.states, self.states], -1)
        step = F.softplus(step)
        decay = torch.exp(-step.unsqueeze(-1) * self.decay)
        add = (step * u).unsqueeze(-1) * b.unsqueeze(2)
        state, outputs = torch.zeros_like(add[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + add[:, t]
            outputs.append((state * c[:, t, None]).sum(-1))
        return x + self.out(torch.stack(outputs, 1) * F.silu(gate))


class Mamba(Net):
    """Predicts the next token by scans. The head's weight is that of the embedding."""

    vocabulary, width, layers, length, batch = 4000, 192, 4, 32, 12

    def __init__(self, o):
        super().__init__(o)
        self.embedding = nn.Embedding(self.vocabulary, self.width)
        self.blocks = nn.ModuleList(
            ScanBlock(self.width, 2 * self.width, 8) for _ in range(self.layers)
        )
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    inputs = classmethod(GPT.inputs.__func__)

    def forward(self, tokens, target):
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = self.run(i, block, x)
        return self.token_loss(self.norm(x), self.head, target)


class DecoderBlock(nn.Module):
    """A block that attends to what an encoder made, too."""

    def __init__(self, o, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attention = Attention(o, width, heads, causal=True)
        self.cross = Attention(o, width, heads)
        self.mlp = MLP(width, 4 * width, dropout)

    def forward(self, x, memory):
        x = x + self.attention(self.norm1(x))
        x = x + self.cross(self.norm2(x), memory)
        return x + self.mlp(self.norm3(x))


class Seq2Seq(Net):
    """Translates a long text to a short one."""

    vocabulary, width, layers, heads, source, length, batch = 5000, 192, 3, 4, 384, 96, 4

    def __init__(self, o):
        super().__init__(o)
        self.embedding = nn.Embedding(self.vocabulary, self.width)
        self.encoder = nn.ModuleList(
            Block(o, self.width, self.heads, dropout=0.1) for _ in range(self.layers)
        )
        self.blocks = nn.ModuleList(
            DecoderBlock(o, self.width, self.heads, 0.1) for _ in range(self.layers)
        )
        self.norm1, self.norm2 = nn.LayerNorm(self.width), nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.vocabulary, bias=False)

    @classmethod
    def inputs(cls, batch, sequence):
        source = torch.randint(cls.vocabulary, (batch, int(cls.source * sequence))).cuda()
        target = torch.randint(cls.vocabulary, (batch, int(cls.length * sequence))).cuda()
        return (source, target), target

    def forward(self, tokens, target):
        memory = self.embedding(tokens[0])
        for i, block in enumerate(self.encoder):
            memory = self.run(i, block, memory)
        memory = self.norm1(memory)
        x = self.embedding(tokens[1])
        for i, block in enumerate(self.blocks):
            x = self.run(i, block, x, memory)
        return self.token_loss(self.norm2(x), self.head, target)


class MultiTask(Net):
    """One trunk and three heads: a tag for each token, a class and a number for each text."""

    vocabulary, width, layers, heads, length, batch = 8000, 256, 4, 8, 128, 8

    def __init__(self, o):
        super().__init__(o)
        self.embedding = nn.Embedding(self.vocabulary, self.width)
        self.blocks = nn.ModuleList(
            Block(o, self.width, self.heads, dropout=0.1) for _ in range(self.layers)
        )
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, self.vocabulary)
        self.kind = MLP(self.width, 2 * self.width)
        self.classes = nn.Linear(self.width, 20)
        self.score = nn.Linear(self.width, 1)

    @classmethod
    def inputs(cls, batch, sequence):
        tokens = torch.randint(cls.vocabulary, (batch, int(cls.length * sequence))).cuda()
        tags = torch.randint(cls.vocabulary, tokens.shape).cuda()
        return tokens, (tags, torch.randint(20, (batch,)).cuda(), torch.rand(batch).cuda())

    def forward(self, tokens, target):
        x = self.embedding(tokens)
        for i, block in enumerate(self.blocks):
            x = self.run(i, block, x)
        x = self.norm(x)
        logits, loss = self.token_loss(x, self.head, target[0])
        pooled = x.mean(1)
        loss = loss + F.cross_entropy(self.classes(self.kind(pooled)), target[1])
        return logits, loss + F.mse_loss(self.score(pooled).squeeze(-1), target[2])


class Parallel(GPT):
    """The model of the runs with several ranks."""

    vocabulary, width, layers, heads, length, batch = 7000, 320, 4, 5, 128, 6
