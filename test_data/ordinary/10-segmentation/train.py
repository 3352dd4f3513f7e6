import argparse
import logging
from pathlib import Path

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import PolynomialLR
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

from data import make_loaders
from metrics import mean_iou, pixel_accuracy

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("segmentation")


def train_one_epoch(model, loader, criterion, optimizer, scheduler, device, num_classes):
    model.train()
    losses = []
    all_outputs = []
    all_masks = []
    for step, (images, masks) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        masks = masks.to(device, non_blocking=True)

        outputs = model(images)["out"]
        loss = criterion(outputs, masks)

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()

        losses.append(loss)
        all_outputs.append(outputs)
        all_masks.append(masks)
        if step % 5 == 0:
            log.info("step %d/%d loss %.4f", step, len(loader), loss.item())

    preds = torch.cat([o.argmax(1) for o in all_outputs])
    masks = torch.cat(all_masks)
    return {
        "loss": torch.stack(losses).mean().item(),
        "accuracy": pixel_accuracy(preds, masks),
        "miou": mean_iou(preds, masks, num_classes),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--n-train", type=int, default=96)
    parser.add_argument("--num-classes", type=int, default=21)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--save-dir", type=Path, default=None)
    args = parser.parse_args()

    torch.manual_seed(3407)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loader = make_loaders(args.batch_size, args.n_train, args.size, args.num_classes)

    model = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None,
                                      num_classes=args.num_classes).to(device)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = PolynomialLR(optimizer, total_iters=args.epochs * len(loader), power=0.9)

    for epoch in range(args.epochs):
        stats = train_one_epoch(model, loader, criterion, optimizer, scheduler, device,
                                args.num_classes)
        log.info("epoch %d: %s", epoch, {k: round(v, 4) for k, v in stats.items()})
        if args.save_dir is not None:
            args.save_dir.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), args.save_dir / f"epoch{epoch}.pt")


if __name__ == "__main__":
    main()
