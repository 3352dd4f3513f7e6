"""Reads Python objects without running code of the program.

``o.attribute``, ``len(o)`` and ``isinstance(o, C)`` may all be code of the program. What is here
calls only the functions of C that a type of Python itself brings.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_DICT_OF_TYPE: Callable[[Any], Any] = type.__dict__["__dict__"].__get__
_MRO: Callable[[Any], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_QUALNAME: Callable[[Any], str] = type.__dict__["__qualname__"].__get__

#: Longest name that is written.
MAX_NAME = 120


def is_a(value: Any, base: type) -> bool:
    """Whether a value is of a type, as the type itself says."""
    return any(one is base for one in _MRO(type(value)))


def type_name(value: Any) -> str:
    """The name of a value's type: ``list``, ``Trainer.State``."""
    return _QUALNAME(type(value))[:MAX_NAME]


def class_name(kind: type) -> str:
    """The name of a class."""
    return _QUALNAME(kind)[:MAX_NAME]


def defined(kind: type, name: str) -> Any:
    """What a class or its bases define under a name; None without."""
    for one in _MRO(kind):
        found = _DICT_OF_TYPE(one).get(name)
        if found is not None:
            return found
    return None


def attributes(value: Any) -> dict[Any, Any] | None:
    """The dict of a value's attributes; None without one, or where a property hides it."""
    if is_a(value, type):
        return None
    own = defined(type(value), "__dict__")
    if type(own) is not types.GetSetDescriptorType:
        return None
    try:
        found = own.__get__(value, type(value))
    except Exception:
        return None
    return found if is_a(found, dict) else None


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that lie in the value itself: slots, and fields of types of C."""
    for one in _MRO(type(value)):
        for name, what in _DICT_OF_TYPE(one).items():
            if type(what) is types.MemberDescriptorType:
                try:
                    yield name, what.__get__(value, type(value))
                except Exception:
                    continue


def length(value: Any) -> int | None:
    """How many items a container of Python has; None for other values."""
    for base in (list, tuple, dict, set, frozenset, deque):
        if is_a(value, base):
            return int(base.__len__(value))
    return None


def key_name(key: Any) -> str:
    """A key in words. A key of the program's own type has only its type."""
    kind = type(key)
    if kind is str:
        return str(key)[:MAX_NAME]
    if kind in (bool, float) or key is None or (kind is int and key.bit_length() <= 64):
        return repr(key)[:MAX_NAME]
    if kind is tuple and len(key) <= 4 and all(type(one) in (str, int) for one in key):
        return f"({', '.join(key_name(one) for one in key)})"[:MAX_NAME]
    return f"{_QUALNAME(kind)[:MAX_NAME]}"


def items(value: Any) -> Iterator[tuple[Any, Any]]:
    """The items of a container of Python, each with its index or key; None in a set."""
    if is_a(value, dict):
        yield from dict.items(value)
    else:
        for base in (list, tuple, deque):
            if is_a(value, base):
                yield from enumerate(base.__iter__(value))
        for unordered in (set, frozenset):
            if is_a(value, unordered):
                for item in unordered.__iter__(value):
                    yield None, item


def item_name(container: Any, key: Any) -> str | None:
    """The index or key of an item of a container in words; None in a set."""
    return None if is_a(container, set) or is_a(container, frozenset) else key_name(key)
