"""Jobs of several ranks for dry runs: ``dry_jobs.py NAME``.

A step of a GPT-like model. Weights, gradients and moments have about 1 GiB each.
"""

from __future__ import annotations

import os
import sys
import warnings

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional as F

WIDTH = 2048
LAYERS = 5
TOKENS = 1024
BATCH = 4
STEPS = 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.qkv(self.norm(x))
        # The heads of this rank.
        heads = y.unflatten(-1, (3, -1, 128)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


def blocks(count: int = LAYERS) -> nn.Sequential:
    with torch.device("cuda"):
        return nn.Sequential(*[Block() for _ in range(count)])


def inputs() -> torch.Tensor:
    return torch.randn(BATCH, TOKENS, WIDTH, device="cuda")


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(STEPS):
        model(inputs()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def start() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl")


def fsdp() -> None:
    from torch.distributed.fsdp import fully_shard

    start()
    model = blocks()
    for block in model:
        fully_shard(block)
    fully_shard(model)
    train(model, torch.optim.AdamW(model.parameters()))


def zero() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    start()
    model = DistributedDataParallel(blocks(), gradient_as_bucket_view=True)
    adam = torch.optim.AdamW
    train(model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=adam))


def ddp() -> None:
    from torch.nn.parallel import DistributedDataParallel

    start()
    model = DistributedDataParallel(blocks())
    train(model, torch.optim.AdamW(model.parameters()))


def tensor() -> None:
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    start()
    mesh = init_device_mesh("cuda", (distributed.get_world_size(),))
    model = blocks()
    plan = {
        "qkv": ColwiseParallel(),
        "out": RowwiseParallel(),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }
    for block in model:
        parallelize_module(block, mesh, plan)
    # The norms are no DTensors, and one call of foreach takes no mixture.
    train(model, torch.optim.AdamW(model.parameters(), foreach=False))


def pipeline() -> None:
    """Stages that know their shapes. With the word ``asks`` they ask their neighbors."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    start()
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    share = 8 // ranks
    stage = blocks(share)
    if rank == ranks - 1:
        # Logits: the last stage needs most.
        stage.append(nn.Linear(WIDTH, 16 * WIDTH, device="cuda"))
    hidden = torch.empty(1, TOKENS, WIDTH, device="meta")
    result = hidden
    if rank == ranks - 1:
        result = torch.empty(1, TOKENS, 16 * WIDTH, device="meta")
    shapes = {} if "asks" in sys.argv else {"input_args": hidden, "output_args": result}
    device = torch.device("cuda", torch.cuda.current_device())
    part = PipelineStage(stage, rank, ranks, device, **shapes)
    schedule = Schedule1F1B(part, 4, loss_fn=lambda y, target: y.square().mean())
    optimizer = torch.optim.AdamW(stage.parameters())
    for _ in range(STEPS):
        first = (inputs(),) if rank == 0 else ()
        last = {"target": inputs()} if rank == ranks - 1 else {}
        schedule.step(*first, **last)
        optimizer.step()
        optimizer.zero_grad()


def plain() -> None:
    model = blocks()
    train(model, torch.optim.AdamW(model.parameters()))


def four() -> None:
    """A job of four ranks: others end with an error."""
    start()
    assert distributed.get_world_size() == 4, "this job has four ranks"
    fsdp_model = blocks(1)
    train(fsdp_model, torch.optim.AdamW(fsdp_model.parameters()))


def argument() -> None:
    """The number of ranks comes from the command line, too."""
    name, value = sys.argv[2:4]
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    ranks = {"world_size": int(value)} if name == "--world" else {}
    distributed.init_process_group("nccl", rank=int(os.environ["RANK"]), **ranks)
    init_device_mesh("cuda", (int(value),))
    model = blocks(1)
    train(model, torch.optim.AdamW(model.parameters()))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    globals()[sys.argv[1]]()
    if distributed.is_initialized():
        distributed.destroy_process_group()
