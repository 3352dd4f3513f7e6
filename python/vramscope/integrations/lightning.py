"""For the ``Trainer`` of Lightning::

Trainer(callbacks=[VramscopeCallback("runs/42")])

or, to record before the model is made::

with vramscope.record("runs/42") as recorder:
    Trainer(callbacks=[VramscopeCallback(recorder)]).fit(Model())
"""

from __future__ import annotations

import os
from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback

from ..recorder import Recorder
from ._given import Given


class VramscopeCallback(Callback):
    """Records from the setup of the model to the end of the fit, and names its tensors.

    Args:
        into: The folder, or a recorder that the program starts and stops.
        options: For a folder: see :func:`vramscope.record`.
    """

    def __init__(self, into: str | os.PathLike[str] | Recorder, **options: Any) -> None:
        self._given = Given(into, options)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._given.start()
        self._given.recorder.watch(pl_module)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._given.recorder.watch(pl_module, list(trainer.optimizers))

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        self._given.recorder.step()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._given.stop()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._given.stop()
