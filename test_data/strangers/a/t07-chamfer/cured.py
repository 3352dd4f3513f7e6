import argparse

import torch
from torch import nn


class PointDecoder(nn.Module):
    def __init__(self, latent, n_points):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 512), nn.ReLU(), nn.Linear(512, n_points * 3))

    def forward(self, cloud):
        code = self.encoder(cloud).amax(dim=1)
        return self.decoder(code).view(len(cloud), -1, 3)


def chamfer(a, b):
    a, b = a[:, torch.randperm(a.shape[1], device=a.device)[:3000]], b[:, torch.randperm(b.shape[1], device=b.device)[:3000]]
    d = torch.cdist(a, b)
    return d.min(dim=2).values.mean() + d.min(dim=1).values.mean()


def train(args):
    model = PointDecoder(256, args.points).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for it in range(args.iters):
        cloud = torch.rand(args.batch, args.points, 3, device="cuda")
        loss = chamfer(model(cloud), cloud)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"iter {it}: chamfer {loss.item():.5f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=12000)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--iters", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-3)
    train(parser.parse_args())
