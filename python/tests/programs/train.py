"""A few steps of training. With --oom the last asks for more memory than there is."""

import argparse
import sys

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--status", type=int, default=0)
parser.add_argument("--oom", action="store_true")
parser.add_argument("--catch", action="store_true")
parser.add_argument("--fraction", type=float, default=1.0)
wanted = parser.parse_args()

if wanted.fraction < 1.0:
    torch.cuda.set_per_process_memory_fraction(wanted.fraction)
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def train(rows: int) -> None:
    loss = model(torch.randn(rows, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


for _ in range(3):
    train(64)
if wanted.oom:
    try:
        train(1 << 22)
    except torch.cuda.OutOfMemoryError:
        if not wanted.catch:
            raise
        train(64)
# In one piece: several ranks write.
sys.stdout.write("trained\n")
sys.exit(wanted.status)
