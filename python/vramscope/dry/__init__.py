"""Dry runs: a program with PyTorch and its allocator, without a GPU. See ``docs/dry-run.md``."""

from __future__ import annotations
