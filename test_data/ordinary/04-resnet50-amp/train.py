import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torchvision
from torch.utils.data import DataLoader, Dataset


class FakeImageNet(Dataset):
    """Stands in for ImageFolder until the data are copied to this machine."""

    def __init__(self, size, num_classes=1000, resolution=224):
        self.size = size
        self.num_classes = num_classes
        self.images = torch.randint(0, 256, (64, 3, resolution, resolution), dtype=torch.uint8)
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        img = self.images[idx % len(self.images)].float().div_(255)
        img = (img - self.mean) / self.std
        return img, idx % self.num_classes


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


def accuracy(output, target):
    with torch.no_grad():
        return (output.argmax(1) == target).float().mean().item() * 100


def train_one_epoch(model, loader, criterion, optimizer, scaler, scheduler, device, epoch):
    model.train()
    losses, top1 = AverageMeter(), AverageMeter()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)

        with torch.autocast("cuda", dtype=torch.float16):
            output = model(images)
            loss = criterion(output, target)

        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()

        losses.update(loss.item(), images.size(0))
        top1.update(accuracy(output, target), images.size(0))
        print(f"Epoch [{epoch}][{i}/{len(loader)}] loss {losses.avg:.4f} "
              f"acc@1 {top1.avg:.2f} time {time.time() - end:.2f}")
        end = time.time()


def main():
    parser = argparse.ArgumentParser(description="ImageNet training")
    parser.add_argument("-b", "--batch-size", default=256, type=int)
    parser.add_argument("--epochs", default=1, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--wd", default=1e-4, type=float)
    parser.add_argument("--samples", default=1536, type=int)
    parser.add_argument("--checkpoint-dir", default=None)
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda")

    model = torchvision.models.resnet50(weights=None).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9,
                                weight_decay=args.wd, nesterov=True)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(FakeImageNet(args.samples), batch_size=args.batch_size,
                        shuffle=True, num_workers=2, pin_memory=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=args.epochs * len(loader))

    for epoch in range(args.epochs):
        train_one_epoch(model, loader, criterion, optimizer, scaler, scheduler, device, epoch)
        if args.checkpoint_dir:
            torch.save({"epoch": epoch, "model": model.state_dict(),
                        "optimizer": optimizer.state_dict()},
                       os.path.join(args.checkpoint_dir, f"checkpoint_{epoch}.pt"))


if __name__ == "__main__":
    main()
