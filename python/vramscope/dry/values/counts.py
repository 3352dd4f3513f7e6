"""How large the results are that a kernel would count.

PyTorch reads the count from device memory before it allocates the result.
"""

from __future__ import annotations

from typing import Any

from .plans import Plan

#: Reads of a kernel for a count, at most. Those that are left over are dropped.
READS = 4


def of(plan: Plan, result: Any, args: Any) -> list[int]:
    """The numbers that the kernel is to read; the count is a guess if there is no result."""
    name = plan.name
    if name == "equal":
        return [] if result is None else [int(result)]
    if name == "repeat_interleave" and result is None:
        # Its kernel adds up the repeats by operators, which have values where they are known.
        return []
    if result is None:
        return [max(args[0].numel() // 2, 1) if args[0].numel() else 0] * READS
    if name in ("masked_select", "repeat_interleave"):
        return [result.numel()] * READS
    if name in ("nonzero", "nms"):
        return [result.shape[0]] * READS
    if name == "unique_dim" or name == "unique_dim_consecutive":
        return [result[0].shape[args[1]]] * READS
    if name == "unique_consecutive" and len(args) > 3 and args[3] is not None:
        return [result[0].shape[args[3]]] * READS
    return [result[0].numel()] * READS
