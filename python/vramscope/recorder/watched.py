"""The models and optimizers whose tensors get names."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import tensors

#: A reference that does not keep an object alive; a call returns it, or ``None`` once it is gone.
Reference = Callable[[], Any]


class Watched:
    """Models and optimizers. None of them is kept alive: that would hold their memory."""

    def __init__(self) -> None:
        self._models: list[Reference] = []
        self._optimizers: list[Reference] = []

    def add(self, model: Any, optimizer: Any) -> None:
        """Adds a model and its optimizer, or lists of them.

        Raises:
            TypeError: The model has no named parameters, or the optimizer has no state.
        """
        models, optimizers = [*_each(model)], [*_each(optimizer)]
        for one in models:
            if not callable(getattr(one, "named_parameters", None)):
                raise TypeError(f"model is a {type(one).__name__}, expected a torch.nn.Module")
        for one in optimizers:
            if not hasattr(one, "state"):
                raise TypeError(f"optimizer is a {type(one).__name__}, expected an optimizer")
        _extend(self._models, models)
        _extend(self._optimizers, optimizers)

    def __bool__(self) -> bool:
        return any(reference() is not None for reference in [*self._models, *self._optimizers])

    def first_optimizer(self) -> Any:
        """The optimizer that was added first, of those that are not gone; ``None`` without any."""
        return next(_live(self._optimizers), None)

    def tensors(self) -> list[dict[str, Any]]:
        """Their tensors that are on a device now: see :func:`tensors.tensors_of`."""
        return tensors.tensors_of([*_live(self._models)], [*_live(self._optimizers)])


def reference(value: Any) -> Reference:
    """A reference to an object. It keeps only objects alive that allow no other."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _each(one)
    elif isinstance(getattr(value, "optimizers", None), (list, tuple)):
        # torchtitan's container of the optimizers of the parts of a model.
        yield from _each(value.optimizers)
    elif value is not None:
        yield value


def _extend(known: list[Reference], found: list[Any]) -> None:
    ids = {id(one) for one in _live(known)}
    known[:] = [one for one in known if one() is not None]
    known.extend(reference(one) for one in found if id(one) not in ids)


def _live(references: list[Reference]) -> Iterator[Any]:
    for one in references:
        value = one()
        if value is not None:
            yield value
