"""Gives small tensors of a dry run the values that a GPU would give them.

Programs read values: the count of a mask, a router's choice, a length. Without values they take
other paths, with other peaks.
"""

from __future__ import annotations

import time
from typing import Any

from ..frames import not_compiled
from .compute import Cpu
from .cpu import DeviceMemory
from .install import Installer
from .kernels import Kernels, Limits
from .made_up import Maker
from .releases import NoInterception, registry
from .report import Report

__all__ = ["Values", "start"]


class Values:
    """The values of this process."""

    def __init__(self, report: Report, refused: str | None, seconds: float) -> None:
        self._report = report
        self._refused = refused
        self._seconds = seconds

    def facts(self) -> dict[str, Any]:
        """What was computed, what was made up, and where it was read, as JSON has it.

        ``available`` is false, and ``reason`` says why, where this PyTorch cannot compute values.
        """
        facts = self._report.facts()
        facts["available"] = self._refused is None
        if self._refused is not None:
            facts |= {"reason": self._refused, "exact": False}
        facts["start_seconds"] = round(self._seconds, 3)
        return facts


def start(core: Any, *, is_full: bool = False) -> Values:
    """Gives values to the small tensors of this process, from now on.

    Args:
        core: The library of the device, as ``ctypes`` loads it.
        is_full: Whether large tensors get values, too.
    """
    begin = time.perf_counter()
    report = Report()
    refused: str | None = None
    try:
        replaced = registry()
    except NoInterception as error:
        refused = str(error)
    else:
        cpu = Cpu(DeviceMemory.of(core), report)
        maker = Maker(cpu, report)
        kernels = Kernels(cpu, maker, report, core, Limits(is_full))
        Installer(replaced, kernels, maker, report).install()
        not_compiled()
    return Values(report, refused, time.perf_counter() - begin)
