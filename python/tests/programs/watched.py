"""Begins to record before the model exists, and names its tensors later."""

import gc
import os
import weakref

import torch

import vramscope


def built(width):
    model = torch.nn.Sequential(torch.nn.Linear(256, width), torch.nn.Linear(width, 256)).cuda()
    return model, torch.optim.AdamW(model.parameters())


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


with vramscope.record(os.environ["RUN"]) as recorder:
    model, optimizer = built(512)
    train(model, optimizer, 1)
    recorder.dump("unnamed")
    # The names are those of the model within.
    wrapper = torch.nn.DataParallel(model)
    recorder.watch(wrapper, optimizer)
    recorder.dump("named")
    train(model, optimizer, 2)
    recorder.dump("trained")
    # The recorder does not hold a model that the program has dropped.
    dropped = weakref.ref(model)
    held = torch.cuda.memory_allocated()
    del wrapper, model, optimizer
    gc.collect()
    # Parameters, gradients and two states of 1 MiB each.
    print(dropped(), held - torch.cuda.memory_allocated() >= 4 << 20)
    try:
        recorder.watch("model")
    except TypeError as error:
        print(error)
    # Another optimizer ends the steps now. Two models may be watched at once.
    both = [built(128), built(64)]
    recorder.watch([model for model, _ in both], [optimizer for _, optimizer in both])
    for model, optimizer in both:
        train(model, optimizer, 2)
