import torch
from torch import nn

TASKS = ["depth", "normals", "edges", "albedo", "flow", "keypoints"]


class MultiTask(nn.Module):
    def __init__(self, dim=2048):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(512, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.heads = nn.ModuleDict({name: nn.Linear(dim, 16) for name in TASKS})

    def forward(self, x):
        z = self.trunk(x)
        return {name: head(z) for name, head in self.heads.items()}


def pcgrad(losses, params):
    flat = []
    for loss in losses:
        grads = torch.autograd.grad(loss, params, retain_graph=True)
        flat.append(torch.cat([g.reshape(-1) for g in grads]))
    projected = [g.clone() for g in flat]
    for g in projected:
        for other in flat:
            dot = torch.dot(g, other).clamp(max=0)  # 0 for itself
            g.sub_(dot / (other.norm() ** 2 + 1e-8) * other)
    total, offset = torch.stack(projected).sum(0), 0
    for p in params:
        p.grad, offset = total[offset : offset + p.numel()].view_as(p).clone(), offset + p.numel()


model = MultiTask().cuda()
shared = list(model.trunk.parameters())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(128, 512, device="cuda")
    outputs = model(x)
    losses = [(outputs[name] - torch.randn(128, 16, device="cuda")).pow(2).mean() for name in TASKS]
    pcgrad(losses, shared)
    for name, loss in zip(TASKS, losses):
        head = model.heads[name]
        head.weight.grad, head.bias.grad = torch.autograd.grad(loss, [head.weight, head.bias], retain_graph=True)
    optimizer.step()
print({name: round(loss.item(), 3) for name, loss in zip(TASKS, losses)})
