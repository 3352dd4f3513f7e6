"""For the ``Trainer`` of Transformers::

Trainer(..., callbacks=[VramscopeCallback("runs/42")])

or, to record before the model is made::

with vramscope.record("runs/42") as recorder:
    Trainer(Model(), callbacks=[VramscopeCallback(recorder)]).train()
"""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from ..recorder import Recorder
from ._given import Given


class VramscopeCallback(TrainerCallback):
    """Records from the beginning of the training to its end, and names the tensors.

    Args:
        into: The folder, or a recorder that the program starts and stops.
        options: For a folder: see :func:`vramscope.record`.
    """

    def __init__(self, into: str | os.PathLike[str] | Recorder, **options: Any) -> None:
        self._given = Given(into, options)

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **kwargs: Any,
    ) -> None:
        self._given.start()
        self._given.recorder.watch(model, optimizer)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._given.recorder.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._given.stop()
