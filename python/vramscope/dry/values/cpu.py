"""Tensors of the CPU over the addresses of device memory."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

#: Ranges of addresses that :meth:`DeviceMemory.of` reads at most.
MAX_RANGES = 64
#: Views that are kept.
MAX_VIEWS = 1 << 14


class NotInDeviceMemory(Exception):
    """A tensor of CUDA lies elsewhere: in managed memory, or in pinned memory of the host."""


class DeviceMemory:
    """The ranges of addresses that stand for device memory. Their pages exist once touched."""

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        #: First address, the one after the last, and the range as one tensor of each type.
        self._ranges: list[tuple[int, int, dict[Any, Any]]] = [
            (first, end, {}) for first, end in ranges
        ]
        #: Views are made anew in 2 microseconds each.
        self._views: dict[Any, Any] = {}

    @classmethod
    def of(cls, core: Any) -> DeviceMemory:
        """The ranges that the core library names."""
        pairs = (ctypes.c_uint64 * (2 * MAX_RANGES))()
        count = min(int(core.dry_ranges(pairs, MAX_RANGES)), MAX_RANGES)
        return cls([(pairs[2 * at], pairs[2 * at + 1]) for at in range(count)])

    def view(self, tensor: Any) -> Any:
        """The bytes of a tensor of CUDA as a tensor of the CPU."""
        key = (tensor.data_ptr(), tensor.dtype, tensor.size(), tensor.stride())
        view = self._views.get(key)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            view = self._views[key] = self._make(tensor)
        if tensor.is_neg():
            view = torch._neg_view(view)
        return torch._conj(view) if tensor.is_conj() else view

    def _make(self, tensor: Any) -> Any:
        address, dtype, size = tensor.data_ptr(), tensor.dtype, tensor.size()
        # A view that is made in inference mode could not be written outside of it.
        with torch.inference_mode(False):
            for first, end, typed in self._ranges:
                if first <= address < end:
                    whole = typed.get(dtype)
                    if whole is None:
                        whole = typed[dtype] = _whole(first, end, dtype)
                    offset = (address - first) // tensor.itemsize
                    return whole.as_strided(size, tensor.stride(), offset)
            if tensor.numel() and not tensor._is_zerotensor():
                raise NotInDeviceMemory(f"address {address:#x}")
            if tensor.numel():
                return torch.zeros((), dtype=dtype, device="cpu").expand(size)
            return torch.empty_strided(size, tensor.stride(), dtype=dtype, device="cpu")


def _whole(first: int, end: int, dtype: Any) -> Any:
    memory = (ctypes.c_ubyte * (end - first)).from_address(first)
    return torch.frombuffer(memory, dtype=torch.uint8).view(dtype)
