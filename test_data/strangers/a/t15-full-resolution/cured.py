import time

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.enabled = False


def conv(i, o, stride):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class Segmenter(nn.Module):
    def __init__(self, num_classes=150):
        super().__init__()
        self.backbone = nn.Sequential(conv(3, 16, 2), conv(16, 32, 2), conv(32, 64, 2))
        self.classifier = nn.Conv2d(64, num_classes, 1)

    def forward(self, images):
        logits = self.classifier(self.backbone(images))
        return F.interpolate(logits, size=images.shape[-2:], mode="bilinear", align_corners=False)


model = Segmenter().cuda().eval()
intersection = torch.zeros(150, device="cuda")
started = time.time()
with torch.inference_mode():
    for i in range(4):
        images = torch.rand(4, 3, 512, 1024, device="cuda")
        labels = torch.randint(0, 150, (4, 512, 1024), device="cuda")
        parts = [model(image[None]).softmax(dim=1).max(dim=1) for image in images]
        confidence, predicted = torch.cat([p.values for p in parts]), torch.cat([p.indices for p in parts])
        hit = (predicted == labels) & (confidence > 0.3)
        intersection.scatter_add_(0, labels.flatten(), hit.flatten().float())
print("hits", intersection.sum().item(), f"{time.time() - started:.1f} s")
