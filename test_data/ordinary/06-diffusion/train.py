import argparse
import copy
import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from unet import UNet


class RandomImages(Dataset):
    def __init__(self, n, size):
        self.x = torch.rand(n, 3, size, size) * 2 - 1

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        img = self.x[i]
        return img.flip(-1) if torch.rand(()) < 0.5 else img


class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.model = copy.deepcopy(model).eval()
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.model.parameters(), model.parameters()):
            e.lerp_(p, 1 - self.decay)
        for e, b in zip(self.model.buffers(), model.buffers()):
            e.copy_(b)


class Diffusion:
    def __init__(self, T, device):
        self.T = T
        self.betas = torch.linspace(1e-4, 0.02, T, device=device)
        self.alphas = 1 - self.betas
        self.abar = torch.cumprod(self.alphas, 0)
        self.device = device

    def loss(self, model, x0):
        t = torch.randint(0, self.T, (x0.size(0),), device=self.device)
        noise = torch.randn_like(x0)
        a = self.abar[t][:, None, None, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
        return F.mse_loss(model(xt, t), noise)

    @torch.no_grad()
    def sample(self, model, n, size, steps=5):
        x = torch.randn(n, 3, size, size, device=self.device)
        for i in reversed(range(0, self.T, self.T // steps)):
            t = torch.full((n,), i, device=self.device)
            eps = model(x, t)
            x = (x - self.betas[i] / (1 - self.abar[i]).sqrt() * eps) / self.alphas[i].sqrt()
            if i > 0:
                x = x + self.betas[i].sqrt() * torch.randn_like(x)
        return x.clamp(-1, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--image_size", type=int, default=64)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--out", type=str, default="")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda")
    loader = DataLoader(RandomImages(4 * args.batch_size, args.image_size),
                        batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = UNet().to(device)
    ema = EMA(model)
    diffusion = Diffusion(1000, device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.LinearLR(opt, start_factor=0.1, total_iters=4)

    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters, "
          f"{len(loader)} batches per epoch")
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x in loader:
            loss = diffusion.loss(model, x.to(device))
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            ema.update(model)
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")
        samples = diffusion.sample(ema.model, 4, args.image_size)
        if args.out:
            os.makedirs(args.out, exist_ok=True)
            torch.save(samples.cpu(), os.path.join(args.out, f"samples_{epoch}.pt"))
            torch.save(ema.model.state_dict(), os.path.join(args.out, "ema.pt"))


if __name__ == "__main__":
    main()
