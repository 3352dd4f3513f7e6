"""In place of torchtitan's ``maybe_enable_memory_snapshot``::

with memory_snapshot("outputs/memory", every=10, model=self.model_parts) as profiler:
    train()
    profiler.step()
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from ..recorder import Recorder, record


@contextlib.contextmanager
def memory_snapshot(
    folder: str | os.PathLike[str], *, global_step: int = 0, **options: Any
) -> Iterator[Recorder]:
    """Records the body.

    Args:
        folder: Where files go.
        global_step: The step of the checkpoint that the training resumes.
        options: See :func:`vramscope.record`. ``model`` may be the list of the model's parts, and
            ``optimizer`` torchtitan's container of optimizers.
    """
    recorder = record(folder, **options)
    recorder.begin_at(global_step)
    with recorder:
        yield recorder
