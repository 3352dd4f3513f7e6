"""Trains a model of `models.py` with the options of a change, and measures its phases."""

import contextlib
import inspect

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

import models


class Options:
    """What a run does. `batch` and `sequence` are factors, each else is a name of the change."""

    def __init__(self, **changes):
        self.program, self.steps, self.batch, self.sequence = "gpt", 4, 1.0, 1.0
        self.accumulate, self.checkpoint, self.chunks, self.flash = 1, "", 1, False
        self.optimizer, self.foreach, self.zero_grad, self.dtype = "adamw", None, "before", ""
        self.offload, self.freeze, self.shard, self.ddp, self.autocast = False, "", 0, False, False
        self.evaluate, self.no_grad, self.drop, self.keep, self.clip = 0, False, False, False, False
        self.__dict__.update(changes)


PROGRAMS = {
    "moe": (models.MoE, {}),
    "vit": (models.ViT, {"clip": True, "evaluate": 2}),
    "mamba": (models.Mamba, {"keep": True}),
    "seq2seq": (models.Seq2Seq, {"clip": True, "zero_grad": "early"}),
    "multitask": (models.MultiTask, {"evaluate": 2}),
    "ddp": (models.Parallel, {"ddp": True, "autocast": True}),
    "fsdp": (models.Parallel, {"shard": 2, "zero_grad": "early"}),
}


class Adam8bit(torch.optim.Optimizer):
    """Moments of one byte with a scale for each 256, as bitsandbytes keeps them."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            if p.grad is None or self.state[p]:
                continue
            small = p.numel() < 4096
            for name in ("exp_avg", "exp_avg_sq"):
                kind = torch.float32 if small else torch.uint8
                self.state[p][name] = torch.zeros(p.shape, dtype=kind, device=p.device)
                if not small:
                    scale = torch.zeros((p.numel() + 255) // 256, device=p.device)
                    self.state[p][name + "_scale"] = scale


def make_optimizer(o, parameters):
    """Returns the optimizer of the options."""
    if o.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3, foreach=o.foreach)
    if o.optimizer == "8bit":
        return Adam8bit(parameters)
    if o.optimizer == "fused":
        return torch.optim.AdamW(parameters, lr=1e-3, fused=True)
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=o.foreach)


def step_in_backward(o, parameters):
    """Steps each parameter as soon as its gradient is complete, and frees the gradient."""
    each = {p: make_optimizer(o, [p]) for p in parameters}

    def hook(p):
        each[p].step()
        each[p].zero_grad()

    for p in parameters:
        p.register_post_accumulate_grad_hook(hook)


def reduced(_, bucket):
    """Returns a bucket of gradients as if all ranks had added theirs."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer().div_(2))
    return future


def make_model(o):
    """Returns the model on the device, frozen, cast and wrapped as the options say."""
    model = PROGRAMS[o.program][0](o)
    if o.dtype:
        model = model.to(getattr(torch, o.dtype))
    model = model.cuda()
    if o.freeze:
        model.embedding.requires_grad_(False)
        if o.freeze == "lower":
            for block in model.blocks[: len(model.blocks) // 2]:
                block.requires_grad_(False)
    if o.shard or o.ddp:
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=o.shard or 2)
    if o.shard:
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    if o.ddp:
        # No other rank answers the first check of shapes, nor the reduction of gradients.
        model = DistributedDataParallel(model, init_sync=False)
        model.register_comm_hook(None, reduced)
    return model


def batch_of(o, parts):
    """Returns the inputs and targets of one of the parts of a batch."""
    kind = PROGRAMS[o.program][0]
    x, y = kind.inputs(int(kind.batch * o.batch) // parts, o.sequence)
    if o.dtype and torch.is_tensor(x) and x.is_floating_point():
        x = x.to(getattr(torch, o.dtype))
    return x, y


def context(o, evaluates=False):
    """Returns the context of forward and loss."""
    stack = contextlib.ExitStack()
    if o.autocast:
        stack.enter_context(torch.autocast("cuda", torch.bfloat16))
    if o.offload and not evaluates:
        stack.enter_context(torch.autograd.graph.save_on_cpu(pin_memory=True))
    return stack


def train(o, meter):
    """Runs all steps. `meter(phase, step)` is called as each phase begins."""
    torch.backends.cudnn.enabled = False
    model = make_model(o)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = None
    if o.optimizer == "in_backward":
        step_in_backward(o, parameters)
    else:
        optimizer = make_optimizer(o, parameters)
    kept = []
    for step in range(o.steps):
        for micro in range(o.accumulate):
            meter("data", step)
            x, y = batch_of(o, o.accumulate)
            if optimizer and o.zero_grad == "before" and micro == 0:
                optimizer.zero_grad()
            meter("forward", step)
            with context(o):
                logits, loss = model(x, y)
            if optimizer and o.zero_grad == "late" and micro == 0:
                optimizer.zero_grad()
            meter("backward", step)
            (loss / o.accumulate).backward()
            if o.keep and not o.drop:
                kept.append(logits)
            if o.drop:
                del logits, loss
        meter("optimizer", step)
        if optimizer:
            if o.clip:
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            if o.zero_grad == "early":
                optimizer.zero_grad()
        if o.evaluate and step % o.evaluate == o.evaluate - 1:
            meter("eval", step)
            x, y = batch_of(o, 1)
            with torch.set_grad_enabled(not o.no_grad), context(o, True):
                logits, loss = model(x, y)
    meter("end", o.steps)


def logits_line():
    """Returns the line of this file that makes the logits of a training step."""
    lines, first = inspect.getsourcelines(train)
    return first + next(i for i, line in enumerate(lines) if "logits, loss = model" in line)
