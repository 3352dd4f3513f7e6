"""Trains in ways that hold more memory after some steps than after others, without a leak."""

import os
import random

import torch

import vramscope

STEPS = 150
MIB = 1 << 18


def floats(mib):
    return torch.zeros(int(mib * MIB), device="cuda")


class Training:
    """A model of 16 MiB and its optimizer."""

    def __init__(self):
        self.model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def backward(self, rows=256):
        self.loss = self.model(torch.zeros(rows, 1024, device="cuda")).sum()
        self.loss.backward()

    def step(self, rows=256):
        self.backward(rows)
        self.optimizer.step()
        self.optimizer.zero_grad()


def plain(at, training, kept):
    training.step()


def lengths(at, training, kept):
    kept["result"] = training.model(torch.zeros(rng.randrange(8, 2048), 1024, device="cuda"))
    training.step(rng.randrange(8, 2048))


def sorted_lengths(at, training, kept):
    kept["result"] = training.model(torch.zeros(8 + at % 50 * 40, 1024, device="cuda"))
    training.step()


def evaluation(at, training, kept):
    training.step()
    if at % 20 == 0:
        results = [training.model(torch.zeros(512, 1024, device="cuda")) for _ in range(20)]
        kept["best"] = results[0].mean().detach()


def accumulation(at, training, kept):
    training.backward()
    if at % 4 == 3:
        training.step()


def gradients_stay(at, training, kept):
    training.backward()
    training.optimizer.step()
    if at % 8 == 0:
        training.optimizer.zero_grad()


def alternating(at, training, kept):
    kept["batch"] = floats(60 if at % 2 else 5)
    training.step()


def cache_of_shapes(at, training, kept):
    kept.setdefault(at % 30, floats(2))
    training.step()


def cache_that_slows_down(at, training, kept):
    kept.setdefault(rng.randrange(40), floats(2))
    training.step()


def window_of_losses(at, training, kept):
    training.step()
    kept[at % 100] = training.loss.detach().clone()


def losses_as_tensors(at, training, kept):
    training.step()
    kept[at] = training.loss.detach().clone()


def average_of_weights(at, training, kept):
    training.step()
    if at == 40:
        kept["average"] = [one.detach().clone() for one in training.model.parameters()]


def saved_every_fifty(at, training, kept):
    training.step()
    if at % 50 == 49:
        kept["saved"] = [one.detach().clone() for one in training.model.parameters()]


def lengths_by_schedule(at, training, kept):
    kept["result"] = training.model(torch.zeros(256 << at // 50, 1024, device="cuda"))
    training.step(256 << at // 50)


def frozen_then_thawed(at, training, kept):
    for one in training.model[:3].parameters():
        one.requires_grad_(at >= 60)
    training.step()


def cycles(at, training, kept):
    batch = {"rows": floats(1)}
    batch["self"] = batch
    if at % 25 == 0:
        import gc

        gc.collect()
    training.step()


KINDS = [one for one in list(globals().values()) if getattr(one, "__module__", "") == __name__]
KINDS = [one for one in KINDS if one not in (floats, Training)]

if __name__ == "__main__":
    for kind in KINDS:
        rng = random.Random(kind.__name__)
        with vramscope.record(os.environ["RUN"], holders=False):
            training, kept = Training(), {}
            for at in range(STEPS):
                kind(at, training, kept)
        del training, kept
        torch.cuda.empty_cache()
    print(len(KINDS))
