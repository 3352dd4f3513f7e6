"""For the ``Trainer`` of Lightning::

Trainer(callbacks=[VramscopeCallback("runs/42")])
"""

from __future__ import annotations

import os
from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback

from ..recorder import record


class VramscopeCallback(Callback):
    """Records from the setup of the model to the end of the fit. Arguments: see :func:`record`."""

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        self._recorder = record(folder, **options)

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._recorder.start()

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        self._recorder.step()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._recorder.stop()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._recorder.stop()
