import torch
import torch.nn as nn
import torch.nn.functional as F

HEADS, DIM, CTX = 8, 256, 512


def alibi(batch, n, device):
    slopes = torch.tensor([2.0 ** -(h + 1) for h in range(HEADS)], device=device)
    pos = torch.arange(n, device=device)
    distance = (pos[None, :] - pos[:, None]).float()
    bias = slopes[:, None, None] * distance
    bias = bias.masked_fill(distance > 0, float("-inf"))
    return bias


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=alibi(b, n, x.device))
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, -1))
        return x + self.mlp(self.n2(x))


lm = nn.Sequential(nn.Embedding(4096, DIM), *[Block() for _ in range(4)], nn.LayerNorm(DIM), nn.Linear(DIM, 4096)).cuda()
opt = torch.optim.AdamW(lm.parameters(), lr=6e-4, betas=(0.9, 0.95))
for step in range(6):
    tokens = torch.randint(4096, (12, CTX + 1)).cuda()
    loss = F.cross_entropy(lm(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(step, loss.item())
