import math

import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR

net = nn.Sequential(nn.Linear(1024, 2560), nn.GELU(), nn.Linear(2560, 2560), nn.GELU(), nn.Linear(2560, 1024)).to("cuda")
cycles = []


def start_cycle(number, length=6):
    optimizer = AdamW(net.parameters(), lr=1e-3 / math.sqrt(number + 1))
    scheduler = CosineAnnealingLR(optimizer, T_max=length)
    cycles.append({"number": number, "optimizer": optimizer, "scheduler": scheduler, "losses": []})
    return cycles[-1]


def train_cycle(cycle, length=6):
    for _ in range(length):
        x = torch.randn(256, 1024).to("cuda")
        loss = nn.functional.l1_loss(net(x), x)
        cycle["optimizer"].zero_grad()
        loss.backward()
        cycle["optimizer"].step()
        cycle["scheduler"].step()
        cycle["losses"].append(loss.item())
    cycle["optimizer"].state.clear()


for number in range(7):
    train_cycle(start_cycle(number))

for cycle in cycles:
    print(cycle["number"], cycle["scheduler"].get_last_lr(), sum(cycle["losses"]) / len(cycle["losses"]))
