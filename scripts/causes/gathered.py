"""FSDP that keeps the gathered weights of each layer until backward; CURE=1 gathers them again."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

CURE = bool(os.environ.get("CURE"))

torch.cuda.set_device(0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
experts = nn.Sequential(
    *[nn.Sequential(nn.Linear(1536, 6144), nn.SiLU(), nn.Linear(6144, 1536)) for _ in range(8)]
).cuda()
for layer in experts:
    fully_shard(layer, reshard_after_forward=CURE)
fully_shard(experts, reshard_after_forward=CURE)
optimizer = torch.optim.AdamW(experts.parameters())
for _ in range(3):
    experts(torch.randn(256, 1536, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
