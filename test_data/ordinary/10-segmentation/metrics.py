import torch


def mean_iou(preds, targets, num_classes):
    ious = []
    for c in range(num_classes):
        p, t = preds == c, targets == c
        union = (p | t).sum().item()
        if union:
            ious.append((p & t).sum().item() / union)
    return sum(ious) / max(1, len(ious))


def pixel_accuracy(preds, targets):
    return (preds == targets).float().mean().item()
