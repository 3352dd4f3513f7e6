"""vramscope: what holds your GPU memory.

import vramscope

with vramscope.record("runs/42"):
    train()
"""

from .recorder import Recorder, record

__all__ = ["Recorder", "record"]
