"""mosaicml/composer#1941

Truth: the EMA algorithm makes two deep copies of the model on the GPU (ema_model and
training_model) beside the trained one; training_model is only a place for the weights during
evaluation, and frozen parameters are copied too.
Cure: one copy of the trainable parameters, swapped with the model's in place for evaluation.
"""

# CAP=24000
import copy
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class ViT(nn.Module):
    def __init__(self, dim=1024, depth=10, classes=1000, image=224, patch=16):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, patch, patch)
        self.pos_embed = nn.Parameter(torch.zeros(1, (image // patch) ** 2, dim))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim, 16, 4 * dim, batch_first=True, norm_first=True, dropout=0.0
            )
            for _ in range(depth)
        )
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class EMA:
    def __init__(self, smoothing=0.999):
        self.smoothing, self.ema_model, self.training_model = smoothing, None, None

    def fit_start(self, model):
        if CURE:
            self.ema_weights = {
                n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad
            }
        else:
            self.ema_model = copy.deepcopy(model)
            self.training_model = copy.deepcopy(model)

    @torch.no_grad()
    def batch_end(self, model):
        shadow = self.ema_weights.values() if CURE else self.ema_model.parameters()
        for ema_param, param in zip(
            shadow, (p for p in model.parameters() if p.requires_grad or not CURE)
        ):
            ema_param.mul_(self.smoothing).add_(param, alpha=1 - self.smoothing)

    @torch.no_grad()
    def swap(self, model, target, source):
        if CURE:
            for n, p in model.named_parameters():
                if n in self.ema_weights:
                    p.data, self.ema_weights[n] = self.ema_weights[n], p.data
            return
        if target is self.training_model:
            for a, b in zip(target.parameters(), model.parameters()):
                a.copy_(b)
        for a, b in zip(model.parameters(), source.parameters()):
            a.copy_(b)


class Trainer:
    def __init__(self, model, algorithms, optimizer):
        self.model, self.ema, self.optimizer = model, algorithms, optimizer

    def fit(self, epochs, batches):
        self.ema.fit_start(self.model)
        for _ in range(epochs):
            self.model.train()
            for _ in range(batches):
                x, y = torch.rand(16, 3, 224, 224).cuda(), torch.zeros(16, dtype=torch.long).cuda()
                F.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.ema.batch_end(self.model)
            self.ema.swap(self.model, self.ema.training_model, self.ema.ema_model)
            self.model.eval()
            with torch.no_grad():
                for _ in range(2):
                    self.model(torch.rand(16, 3, 224, 224).cuda()).argmax(-1).cpu()
            self.ema.swap(self.model, None, self.ema.training_model)


with vramscope.record(os.environ["OUT"]):
    model = ViT().cuda()
    trainer = Trainer(
        model, EMA(), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    )
    trainer.fit(epochs=2, batches=3)
