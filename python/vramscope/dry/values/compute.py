"""Computes an operator on the CPU, over the addresses of device memory."""

from __future__ import annotations

import threading
from typing import Any

import torch

from .cpu import DeviceMemory
from .plans import Plan
from .report import Report

_Tensor = torch.Tensor
#: Types that the CPU lacks for some operators.
_HALF = (torch.float16, torch.bfloat16)
#: Arguments that say where a result lies.
_PLACES = ("pin_memory", "non_blocking")
#: Values that stand for themselves.
_PLAIN = frozenset((int, float, bool, complex, str, type(None), torch.dtype, torch.Size))
#: The seed of the values; the program's generators are left alone.
_SEED = 7


class Cpu:
    """The CPU in the place of the device."""

    def __init__(self, memory: DeviceMemory, report: Report) -> None:
        self.view = memory.view
        self._report = report
        self.generator = torch.Generator()
        self.generator.manual_seed(_SEED)
        self._seeding = threading.Lock()

    def run(self, plan: Plan, args: Any, kwargs: Any) -> Any:
        """The result of an operator, an empty one if it has none; ``None`` if the CPU failed.

        What the operator writes in place is written.
        """
        try:
            call = plan.call
            converted = [one if one.__class__ in _PLAIN else self._on_cpu(one) for one in args]
            named = {
                name: one if one.__class__ in _PLAIN else self._on_cpu(one)
                for name, one in kwargs.items()
                if name not in _PLACES and name not in plan.outputs
            }
            if plan.is_random:
                result = self._random(plan, call, converted, named)
            else:
                result = self._call(call, converted, named)
            return () if result is None else result
        except Exception as error:
            self._report.fail(plan.name, error)
            return None

    def give(self, plan: Plan, results: Any, result: Any) -> int:
        """Copies the CPU's results into PyTorch's. Returns how many: later ones are not known."""
        computed = (result,) if result.__class__ is _Tensor else _flat(result)
        at = 0
        for target, source in zip(results, computed):
            try:
                if target.is_cuda:
                    target = self.view(target)
                if target.data_ptr() != source.data_ptr() and target.numel():
                    if target.shape != source.shape:
                        shapes = f"{tuple(source.shape)}, expected {tuple(target.shape)}"
                        self._report.fail(plan.name, f"the result has shape {shapes}")
                        break
                    target.copy_(source)
            except Exception as error:
                self._report.fail(plan.name, error)
                break
            at += 1
        return at

    def clear(self, plan: Plan, tensor: Any) -> None:
        """Fills a new tensor with zeros."""
        try:
            self.view(tensor).zero_()
        except Exception as error:
            self._report.fail(plan.name, error)

    def _on_cpu(self, value: Any) -> Any:
        if isinstance(value, _Tensor):
            return self.view(value) if value.is_cuda else value
        if isinstance(value, (list, tuple)):
            return [self._on_cpu(one) for one in value]
        if isinstance(value, torch.Generator):
            return self.generator
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return value

    def _random(self, plan: Plan, call: Any, args: Any, kwargs: Any) -> Any:
        if plan.takes_generator:
            names = [one.name for one in plan.operator._schema.arguments]
            if "generator" in names[: len(args)]:
                args[names.index("generator")] = self.generator
            else:
                kwargs["generator"] = self.generator
            return self._call(call, args, kwargs)
        # It draws from the default generator of the process: lend it our state.
        with self._seeding:
            state = torch.get_rng_state()
            torch.set_rng_state(self.generator.get_state())
            try:
                return self._call(call, args, kwargs)
            finally:
                self.generator.set_state(torch.get_rng_state())
                torch.set_rng_state(state)

    def _call(self, call: Any, args: Any, kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except (RuntimeError, NotImplementedError) as error:
            if "not implemented for" not in str(error):
                raise
            return _in_single_precision(call, args, kwargs)


def _in_single_precision(call: Any, args: Any, kwargs: Any) -> Any:
    """Computes in float32 for the CPU, which lacks some operators in half precision."""
    widened: list[tuple[Any, Any]] = []

    def widen(value: Any) -> Any:
        if isinstance(value, _Tensor) and value.dtype in _HALF:
            wide = value.float()
            widened.append((value, wide))
            return wide
        if isinstance(value, list):
            return [widen(one) for one in value]
        return torch.float32 if isinstance(value, torch.dtype) and value in _HALF else value

    wide_kwargs = {name: widen(one) for name, one in kwargs.items()}
    wide_args = [widen(one) for one in args]
    versions = [wide._version for _, wide in widened]
    result = call(*wide_args, **wide_kwargs)
    for (narrow, wide), version in zip(widened, versions):
        if wide._version != version:
            narrow.copy_(wide)
    return result


def _flat(result: Any) -> list[Any]:
    if not isinstance(result, (list, tuple)):
        return []
    found: list[Any] = []
    for one in result:
        if isinstance(one, _Tensor):
            found.append(one)
        else:
            found += _flat(one)
    return found
