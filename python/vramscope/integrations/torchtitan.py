"""In place of torchtitan's ``maybe_enable_memory_snapshot``::

with memory_snapshot("outputs/memory", every=10) as profiler:
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
    """Records the body. ``global_step`` is the step of the checkpoint that the training resumes."""
    recorder = record(folder, **options)
    recorder.begin_at(global_step)
    with recorder:
        yield recorder
