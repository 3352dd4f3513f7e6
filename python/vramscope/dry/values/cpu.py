"""Tensors of the CPU over the addresses of device memory."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

#: Ranges of addresses that :meth:`DeviceMemory.of` reads at most.
MAX_RANGES = 64


class NotInDeviceMemory(Exception):
    """A tensor of CUDA lies elsewhere: in managed memory, or in pinned memory of the host."""


class DeviceMemory:
    """The ranges of addresses that stand for device memory. Their pages exist once touched."""

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        #: First address, the one after the last, and the range as one tensor of each type.
        self._ranges: list[tuple[int, int, dict[Any, Any]]] = [
            (first, end, {}) for first, end in ranges
        ]

    @classmethod
    def of(cls, core: Any) -> DeviceMemory:
        """The ranges that the core library names."""
        pairs = (ctypes.c_uint64 * (2 * MAX_RANGES))()
        count = min(int(core.dry_ranges(pairs, MAX_RANGES)), MAX_RANGES)
        return cls([(pairs[2 * at], pairs[2 * at + 1]) for at in range(count)])

    def view(self, tensor: Any) -> Any:
        """The bytes of a tensor of CUDA as a tensor of the CPU."""
        address = tensor.data_ptr()
        dtype = tensor.dtype
        for first, end, typed in self._ranges:
            if first <= address < end:
                whole = typed.get(dtype)
                if whole is None:
                    whole = typed[dtype] = _whole(first, end, dtype)
                offset = (address - first) // tensor.itemsize
                view = whole.as_strided(tensor.size(), tensor.stride(), offset)
                break
        else:
            if tensor.numel() and tensor._is_zerotensor():
                return torch.zeros((), dtype=dtype, device="cpu").expand(tensor.size())
            if tensor.numel():
                raise NotInDeviceMemory(f"address {address:#x}")
            view = torch.empty_strided(tensor.size(), tensor.stride(), dtype=dtype, device="cpu")
        if tensor.is_conj():
            view = torch._conj(view)
        return torch._neg_view(view) if tensor.is_neg() else view


def _whole(first: int, end: int, dtype: Any) -> Any:
    memory = (ctypes.c_ubyte * (end - first)).from_address(first)
    # A tensor that is made in inference mode could not be written outside of it.
    with torch.inference_mode(False):
        return torch.frombuffer(memory, dtype=torch.uint8).view(dtype)
