"""DDP whose buckets are a second copy of the gradients; CURE=1 makes gradients views of them."""

import os

import torch
import torch.distributed as dist
from torch import nn

CURE = bool(os.environ.get("CURE"))

torch.cuda.set_device(0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
layers = []
for _ in range(6):
    layers += [nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512), nn.ReLU()]
model = nn.Sequential(nn.Conv2d(3, 512, 3, stride=4), *layers, nn.AdaptiveAvgPool2d(1))
model = nn.parallel.DistributedDataParallel(
    model.cuda(), gradient_as_bucket_view=CURE, init_sync=False, broadcast_buffers=False
)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    images = torch.randn(4, 3, 64, 64, device="cuda")
    optimizer.zero_grad(set_to_none=False)
    model(images).mean().backward()
    optimizer.step()
