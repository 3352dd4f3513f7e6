"""For the ``Trainer`` of Transformers::

Trainer(..., callbacks=[VramscopeCallback("runs/42")])
"""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from ..recorder import record


class VramscopeCallback(TrainerCallback):
    """Records from the beginning of the training to its end. Arguments: see :func:`record`."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        self._recorder = record(folder, **options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._recorder.stop()
