"""For loops with Accelerate, which has no callbacks::

with vramscope.record("runs/42") as recorder:
    model, optimizer, data = watch(recorder, accelerator.prepare(model, optimizer, data))

A step ends with ``optimizer.step()``. Of accumulated gradients, that is where the optimizer changes
the parameters.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch

from ..recorder import Recorder

Prepared = TypeVar("Prepared")


def watch(recorder: Recorder, prepared: Prepared) -> Prepared:
    """Names the tensors of what ``accelerator.prepare`` returns. Returns it unchanged."""
    each: tuple[Any, ...] = prepared if isinstance(prepared, tuple) else (prepared,)
    recorder.watch(
        [one for one in each if isinstance(one, torch.nn.Module)],
        [one for one in each if isinstance(one, torch.optim.Optimizer)],
    )
    return prepared
