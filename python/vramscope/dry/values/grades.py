"""What is known of the values in device memory.

A storage is known by its first address. A Python object of a storage would raise its use count, and
with it change what autograd does in place.
"""

from __future__ import annotations

from typing import Any

#: Nothing is known: too large to compute.
ABSENT = 0
#: Plausible, but not computed.
MADE_UP = 1
#: What a GPU would compute.
COMPUTED = 2
#: Allocated, and no operation has written it yet. A read finds what is not computed; a write says
#: what the storage holds from then on.
UNWRITTEN = 3
#: Computed, and zero everywhere. Only of storages too large for others to copy into.
ZERO = 4

#: The grade of a storage, and its bytes.
Entry = tuple[int, int]
Grades = dict[int, Entry]

#: Bytes of the largest result that is made up.
LARGEST_MADE_UP = 1 << 20


def first_address(tensor: Any) -> int:
    """The first address of a tensor's storage."""
    return int(tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize)


def unseen(tensor: Any, nbytes: int) -> Entry:
    """The grade of a storage that no operation has made: another library allocated it."""
    is_small = nbytes <= LARGEST_MADE_UP and not tensor.storage_offset()
    return (MADE_UP if is_small else ABSENT, nbytes)
