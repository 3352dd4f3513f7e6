import torch
from torch import nn
from torch.func import functional_call, grad, vmap
import torch.nn.functional as F

CLIP, SIGMA, LR = 1.0, 0.8, 0.1
model = nn.Sequential(nn.Linear(784, 1024), nn.Tanh(), nn.Linear(1024, 512), nn.Tanh(), nn.Linear(512, 10)).cuda()
params = {k: v.detach() for k, v in model.named_parameters()}


def sample_loss(p, x, y):
    logits = functional_call(model, p, (x.unsqueeze(0),))
    return F.cross_entropy(logits, y.unsqueeze(0))


per_sample_grad = vmap(grad(sample_loss), in_dims=(None, 0, 0))


def private_step(x, y):
    total = {}
    for xs, ys in zip(x.split(16), y.split(16)):
        grads = per_sample_grad(params, xs, ys)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        factor = (CLIP / (norms + 1e-6)).clamp(max=1.0)
        for name, g in grads.items():
            total[name] = total.get(name, 0) + torch.einsum("b,b...->...", factor, g)
        del grads, g
    for name, summed in total.items():
        noisy = summed + SIGMA * CLIP * torch.randn_like(summed)
        params[name] -= LR * noisy / len(x)
    return norms.mean()


for step in range(6):
    images, digits = torch.rand(128, 784, device="cuda"), torch.randint(0, 10, (128,), device="cuda")
    norm = private_step(images, digits)
    print(f"step {step}: mean gradient norm {norm.item():.3f}")
