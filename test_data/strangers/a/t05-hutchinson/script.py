import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda:0")
data = TensorDataset(torch.randn(30 * 1024, 64), torch.randint(0, 10, (30 * 1024,)))
loader = DataLoader(data, batch_size=1024, shuffle=True, drop_last=True)

net = nn.Sequential(
    nn.Linear(64, 1024), nn.Tanh(),
    nn.Linear(1024, 1024), nn.Tanh(),
    nn.Linear(1024, 1024), nn.Tanh(),
    nn.Linear(1024, 10),
).to(device)
params = list(net.parameters())
hessian_diag = [torch.zeros_like(p) for p in params]
criterion = nn.CrossEntropyLoss()

for i, (x, y) in enumerate(loader):
    loss = criterion(net(x.to(device)), y.to(device))
    loss.backward(create_graph=True)
    grads = [p.grad for p in params]
    zs = [torch.randint_like(p, 2) * 2 - 1 for p in params]
    hvs = torch.autograd.grad(grads, params, grad_outputs=zs, retain_graph=True)
    for p, g, h, z, hv in zip(params, grads, hessian_diag, zs, hvs):
        h.mul_(0.99).add_((hv * z).abs(), alpha=0.01)
        p.data.addcdiv_(g.data, h.sqrt().add_(1e-4), value=-0.1)
        p.grad.data.zero_()
    print(f"{i:3d} loss {loss.item():.4f}")
