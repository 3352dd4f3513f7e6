import copy

import torch
from torch import nn
import torch.nn.functional as F


class MoCo(nn.Module):
    """Momentum contrast with a queue of negatives."""

    def __init__(self, dim=256, m=0.999, T=0.07):
        super().__init__()
        self.m, self.T = m, T
        self.encoder_q = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, 4096), dim=0))

    @torch.no_grad()
    def enqueue(self, keys):
        self.queue = torch.cat([keys.T, self.queue], dim=1)[:, :4096].contiguous()

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            for pq, pk in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                pk.mul_(self.m).add_(pq, alpha=1 - self.m)
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = (q * k).sum(1, keepdim=True)
        l_neg = q @ self.queue.clone().detach()
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


model = MoCo().cuda()
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for step in range(300):
    x = torch.randn(512, 1024, device="cuda")
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("final", loss.item())
