"""Leaks 8 MiB a step, held by KIND: ``leaks.py KIND [STEPS] [with] [infer]``.

``with`` records by the library. ``infer`` runs without an optimizer.
"""

import contextlib
import os
import sys
import time

import torch

import vramscope

KIND, REST = sys.argv[1], sys.argv[2:]
STEPS = next((int(one) for one in REST if one.isdigit()), 40)
PAUSE = float(os.environ.get("PAUSE", "0"))
HAS_OPTIMIZER = "infer" not in REST
KEPT = []
TABLE = {}
MIB_8 = 2 << 20


def leaked():
    return torch.zeros(MIB_8, device="cuda")


def steps():
    """Trains a small model, and yields in each step."""
    model = torch.nn.Linear(512, 512, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        rows = torch.randn(64, 512, device="cuda")
        with torch.set_grad_enabled(HAS_OPTIMIZER):
            loss = model(rows).sum()
        yield
        time.sleep(PAUSE)
        if HAS_OPTIMIZER:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def leak_global():
    for _ in steps():
        KEPT.append(leaked())


def leak_local():
    kept = []
    for _ in steps():
        kept.append(leaked())


class Logger:
    def __init__(self):
        self.history = []

    def log(self, value):
        self.history.append(value)


def leak_attribute():
    logger = Logger()
    for _ in steps():
        logger.log(leaked())


def leak_closure():
    seen = []

    def see():
        seen.append(leaked())

    for _ in steps():
        see()


class BadRow(Exception):
    pass


def fail():
    rows = leaked()
    raise BadRow(len(rows))


def leak_exception():
    errors = []
    for _ in steps():
        try:
            fail()
        except BadRow as error:
            errors.append(error)


def leak_hook():
    features = []
    net = torch.nn.Linear(2048, 1024, device="cuda")
    net.register_forward_hook(lambda module, rows, result: features.append(result))
    with torch.no_grad():
        for _ in steps():
            net(torch.zeros(2048, 2048, device="cuda"))


def leak_dict():
    table = {}
    for step, _ in enumerate(steps()):
        table[step] = leaked()


def main():
    globals()[f"leak_{KIND}"]()


if __name__ == "__main__":
    is_recorded = "with" in REST
    with vramscope.record(os.environ["RUN"]) if is_recorded else contextlib.nullcontext():
        main()
