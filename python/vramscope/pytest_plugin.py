"""A fixture of pytest that holds a block of code to a limit of GPU memory.

    def test_step(vramscope_peak):
        with vramscope_peak(limit="2GiB"):
            step()

Installing the package is enough: pytest finds the fixture by an entry point.

``pytest --vramscope-dry-run=H100`` runs tests that need a GPU on a machine without one: PyTorch and
its allocator run for real, kernels do nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import Any, Callable

import pytest

#: The option that runs tests dry.
_OPTION = "--vramscope-dry-run"

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
#: Call sites that a failure names.
_SITES = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of dry runs."""
    group = parser.getgroup("vramscope")
    group.addoption(
        _OPTION,
        metavar="GPU",
        default=None,
        help="give tests this GPU without its hardware: H100, A100, L4, ...",
    )


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Starts pytest once more with the GPU, before any test imports PyTorch."""
    gpu = early_config.known_args_namespace.vramscope_dry_run
    if gpu is not None:
        from .dry import tests

        capture = early_config.pluginmanager.getplugin("capturemanager")
        # The new process writes to the terminal.
        release = capture.stop_global_capturing if capture is not None else lambda: None
        try:
            tests.start(gpu, release)
        except tests.NotRun as error:
            raise pytest.UsageError(f"{_OPTION}: {error}") from None


@dataclasses.dataclass
class Measured:
    """The memory of a block of code: its numbers are there when it has ended."""

    #: The largest peak of ``requested_bytes`` of a device. What lived before the block counts.
    peak_bytes: int = 0
    #: The device with this peak.
    device: int | None = None
    #: The snapshot; ``None`` if the block has used no device.
    snapshot: pathlib.Path | None = None


@pytest.fixture
def vramscope_peak(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., contextlib.AbstractContextManager[Measured]]:
    """A context manager that fails the test if its block needs more GPU memory than ``limit``.

    ``vramscope_peak(limit="2GiB")`` records the block with :func:`vramscope.record`. It fails if
    the peak of the requested bytes of a device is above the limit: the message has the peak and the
    call sites that hold most. Without PyTorch or without a CUDA device the test is skipped.

    ``limit`` is a number of bytes, or a text such as ``"512MiB"``; without one the block is only
    measured. Other arguments are those of :func:`vramscope.record`.
    """
    _skip_without_device()
    return lambda limit=None, **options: _hold(
        tmp_path_factory.mktemp("vramscope_peak"), limit, options
    )


def _skip_without_device() -> None:
    try:
        import torch
    except ImportError:
        pytest.skip("vramscope_peak needs PyTorch")
    if not torch.cuda.is_available():
        pytest.skip("vramscope_peak needs a CUDA device")


def size_in_bytes(limit: int | str) -> int:
    """Bytes of a limit: a number, or a text such as ``"1.5GiB"``.

    Raises:
        ValueError: The text is no size.
    """
    if isinstance(limit, int):
        return limit
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]iB|B|)", limit.strip())
    if found is None:
        raise ValueError(f"limit is {limit!r}, expected a size such as '512MiB' or '2GiB'")
    return int(float(found[1]) * _UNITS[found[2]])


def _in_words(size: int) -> str:
    units = ("TiB", "GiB", "MiB", "KiB")
    unit = next((unit for unit in units if size >= _UNITS[unit]), "B")
    return f"{size} B" if unit == "B" else f"{size / _UNITS[unit]:.2f} {unit}"


@contextlib.contextmanager
def _hold(
    folder: pathlib.Path, limit: int | str | None, options: dict[str, Any]
) -> Iterator[Measured]:
    import torch

    import vramscope

    most = None if limit is None else size_in_bytes(limit)
    measured = Measured()
    options = {"dump_signal": None, **options}
    with vramscope.record(folder, **options) as recorder:
        yield measured
    # A block that fails has raised: its own error says more than a limit.
    measured.snapshot = next(iter(folder.rglob("exit/*.pickle")), None)
    if measured.snapshot is None:
        if torch.cuda.is_initialized():
            pytest.fail("vramscope_peak could not record: see the warning of the logger vramscope")
        return
    try:
        first = vramscope.open(measured.snapshot)
    except ValueError:
        return  # No memory was allocated on any device.
    kept = recorder._arguments.get("max_entries", 0)
    gpus = [figures for figures in first.summary.devices if figures.kind == "gpu"]
    if any(figures.events >= kept > 0 for figures in gpus):
        pytest.fail(f"the block has more than {kept:,} events: give a larger max_entries")
    peaks = {figures.device: first.of_device(figures.device).peak() for figures in gpus}
    if not peaks:
        return
    device = max(peaks, key=lambda device: peaks[device].peak_bytes)
    measured.device, measured.peak_bytes = device, peaks[device].peak_bytes
    if most is None or measured.peak_bytes <= most:
        return
    over = _in_words(measured.peak_bytes - most)
    lines = [
        f"GPU memory peaks at {_in_words(measured.peak_bytes)} on device {device}, "
        f"{over} above the limit of {_in_words(most)}"
    ]
    rows = peaks[device].rows[:_SITES]
    width = max((len(_in_words(row.live_bytes)) for row in rows), default=0)
    lines += [
        f"  {_in_words(row.live_bytes):>{width}}  {row.category or '':<15}  {row.name}"
        for row in rows
    ]
    lines.append(f"run: vramscope diagnose {measured.snapshot}")
    pytest.fail("\n".join(lines), pytrace=False)
