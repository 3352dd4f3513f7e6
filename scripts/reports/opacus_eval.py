"""meta-pytorch/opacus#176

Truth: evaluation runs under no_grad but the model is still in training mode, so the forward hooks
of the grad-sample module append every layer's input to `layer.activations`, and no backward ever
takes them off again.
Cure: model.eval() before the evaluation (the hooks return at once when the layer is not training).
"""

# CAP=2800
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class GradSampleModule(nn.Module):
    def __init__(self, module):
        super().__init__()
        self._module = module
        for layer in module.modules():
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(self.capture_activations_hook)
                layer.register_full_backward_hook(self.capture_backprops_hook)

    def capture_activations_hook(self, layer, forward_input, forward_output):
        if not layer.training:
            return
        if not hasattr(layer, "activations"):
            layer.activations = []
        layer.activations.append(forward_input[0].detach())

    def capture_backprops_hook(self, layer, _, backprops):
        A, B = layer.activations.pop(), backprops[0].detach()
        if A.dim() == 2:
            A, B = A.unsqueeze(1), B.unsqueeze(1)
        layer.weight.grad_sample = torch.einsum("nki,nkj->nij", B, A)
        layer.bias.grad_sample = B.sum(1)

    def forward(self, x):
        return self._module(x)


class DPOptimizer:
    def __init__(self, optimizer, max_grad_norm):
        self.optimizer, self.max_grad_norm = optimizer, max_grad_norm
        self.params = [p for g in optimizer.param_groups for p in g["params"]]

    def step(self):
        norms = torch.stack([p.grad_sample.flatten(1).norm(dim=1) for p in self.params]).norm(dim=0)
        clip = (self.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        for p in self.params:
            g = torch.einsum("i,i...->...", clip, p.grad_sample)
            p.grad = (g + torch.randn_like(g) * 1.1) / len(clip)
            p.grad_sample = None
        self.optimizer.step()


class CharTagger(nn.Module):
    def __init__(self, vocab=256, dim=256, hidden=1024, classes=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim).requires_grad_(False)
        self.fc1, self.fc2, self.out = (
            nn.Linear(dim, hidden),
            nn.Linear(hidden, dim),
            nn.Linear(dim, classes),
        )

    def forward(self, x):
        h = F.relu(self.fc1(self.embedding(x)))
        return self.out(F.relu(self.fc2(h)))


def train(model, optimizer, criterion, steps):
    model.train()
    for _ in range(steps):
        x, y = (
            torch.randint(0, 256, (64, 512), device="cuda"),
            torch.zeros(64, 512, dtype=torch.long, device="cuda"),
        )
        loss = criterion(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        optimizer.optimizer.zero_grad()


def test(model, batches):
    if CURE:
        model.eval()
    losses = []
    with torch.no_grad():
        for _ in range(batches):
            x, y = (
                torch.randint(0, 256, (128, 512), device="cuda"),
                torch.zeros(128, 512, dtype=torch.long, device="cuda"),
            )
            losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item())
    return losses


with vramscope.record(os.environ["OUT"]):
    model = GradSampleModule(CharTagger()).cuda()
    optimizer = DPOptimizer(
        torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1),
        max_grad_norm=1.0,
    )
    train(model, optimizer, nn.CrossEntropyLoss(), steps=3)
    test(model, batches=10)
