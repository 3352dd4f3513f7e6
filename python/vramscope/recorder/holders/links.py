"""Names references: the links of a chain, from a variable to what holds a block."""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import plain
from .roots import locals_of

#: Dicts of a module of PyTorch whose entries are its attributes.
_OF_MODULE = ("_modules", "_parameters", "_buffers")
_LRU_CACHE = type(functools.lru_cache(maxsize=1)(len))
_GENERATORS: dict[type, str] = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}
#: Attributes of exceptions that are no entries of a dict.
_OF_ERROR: dict[str, Callable[[Any], Any]] = {
    name: BaseException.__dict__[name].__get__
    for name in ("__traceback__", "__context__", "__cause__", "args")
}

Link = dict[str, Any]


class Links:
    """Links, each of which continues another. One that occurs in several chains is there once."""

    def __init__(self, variables: Sequence[Link], found: dict[str, Any], until: float) -> None:
        self._variables = variables
        #: When names are not searched for any more, by ``time.perf_counter``.
        self._until = until
        self._objects = found["objects"]
        self._wanted = {id(one) for one in self._objects}
        self._chains = found["chains"]
        self._labels = found["labels"]
        self.links: list[Link] = []
        self._known: dict[tuple[int | None, str], int] = {}
        #: Of the chain that is read, the number of objects before its cut, and of those left out.
        self._cut: tuple[int, int] = (0, 0)
        #: Of each container, the names of its items by their ids.
        self._items: dict[int, dict[int, str | None]] = {}

    def of_chain(self, number: int) -> int:
        """The last link of a chain."""
        variable, places, cut = self._chains[number]
        objects = [self._objects[place] for place in places]
        last = self._add(None, {**self._variables[variable], **_described(objects[0])}, places[0])
        at = 0
        self._cut = cut or (len(places), 0)
        while at + 1 < len(places):
            link, after = self._step(places, objects, at)
            if "of_first" in link:
                # Of the nodes of a graph, the first and the last are told.
                first = {"by": "graph", "type": link.pop("of_first")}
                last = self._add(last, first, places[at + 1])
            last = self._add(last, link, places[after])
            at = after
        return last

    def of_label(self, last: int, label: tuple[str, str | None]) -> int:
        """The link of a reference that an object has to a tensor which is no object of Python."""
        by, name = label
        return self._add(last, {"by": by, "name": name})

    def root(self, link: Link) -> int:
        """A chain that begins with something else than a variable."""
        return self._add(None, link, -1 - len(self.links))

    # -- Chains ------------------------------------------------------------------------------------

    def _add(self, before: int | None, link: Link, place: int | None = None) -> int:
        key = (before, f"{link['by']} {link.get('name')} {place}")
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.links)
            self.links.append({"from": before, **link})
        return known

    def _step(self, places: list[int], objects: list[Any], at: int) -> tuple[Link, int]:
        """The link from the object at a place of a chain, and the place that it leads to."""
        value, child = objects[at], objects[at + 1]
        label = self._labels.get((places[at], places[at + 1]))
        if label is not None:
            by, name = label
            if by == "graph":
                return self._graph(places, objects, at + 1)
            return {"by": by, "name": name, **_described(child)}, at + 1
        before, left_out = self._cut
        if at + 1 == before:
            return {"by": "reference", "between": left_out, **_described(child)}, at + 1
        # Parts of an object are never on both sides of the cut.
        objects = objects if at >= before else objects[:before]
        kind = type(value)
        two = objects[at + 2] if at + 2 < len(objects) else None
        if two is not None and type(child) is dict:
            if plain.attributes(value) is child or plain.is_a(value, type):
                return self._attribute(objects, at + 2, self._name_in(child, two))
        if kind is types.FunctionType:
            return self._of_function(objects, at)
        if kind is types.MethodType:
            return {"by": "attribute", "name": "__self__", **_described(child)}, at + 1
        if kind is types.CellType:
            return {"by": "cell", **_described(child)}, at + 1
        if kind is types.TracebackType or plain.is_a(value, BaseException):
            return self._of_error(objects, at)
        frame = value if kind is types.FrameType else _frame_of(value)
        if frame is not None and type(child) is not types.FrameType:
            return self._local(frame, child), at + 1
        if frame is not None and two is not None:
            return self._local(frame, two), at + 2
        if kind is _LRU_CACHE:
            return self._of_cache(objects, at)
        if kind is threading.local or kind is queue.SimpleQueue:
            return self._of_own_container(objects, at)
        if plain.length(value) is not None:
            name = self._name_in(value, child)
            return {"by": "item", "name": name, **_described(child)}, at + 1
        return self._attribute(objects, at + 1, self._attribute_name(value, child))

    def _attribute(self, objects: list[Any], at: int, name: str | None) -> tuple[Link, int]:
        """The link to an attribute. Parts of a module of PyTorch are its attributes, too."""
        child = objects[at]
        if name in _OF_MODULE and plain.is_a(child, dict) and at + 1 < len(objects):
            own = self._name_in(child, objects[at + 1])
            if own is not None:
                by = "item" if own.isdigit() else "attribute"
                return {"by": by, "name": own, **_described(objects[at + 1])}, at + 1
        by = "reference" if name is None else "attribute"
        return {"by": by, "name": name, **_described(child)}, at

    def _graph(self, places: list[int], objects: list[Any], at: int) -> tuple[Link, int]:
        """The link to the last of several nodes of a graph that follow each other."""
        before, left_out = self._cut

        def is_graph(end: int) -> bool:
            label = self._labels.get(tuple(places[end : end + 2]))
            return label is not None and label[0] == "graph"

        end, between = at, -1
        while is_graph(end) or (end + 1 == before and is_graph(end + 1)):
            between += 1 + (left_out if end + 1 == before else 0)
            end += 1
        link: Link = {"by": "graph", "type": plain.type_name(objects[end])}
        if end > at:
            link["of_first"] = plain.type_name(objects[at])
        if between > 0:
            link["between"] = between
        return link, end

    def _of_function(self, objects: list[Any], at: int) -> tuple[Link, int]:
        function, child = objects[at], objects[at + 1]
        two = objects[at + 2] if at + 2 < len(objects) else None
        three = objects[at + 3] if at + 3 < len(objects) else None
        code = function.__code__
        if child is function.__closure__ and two is not None and three is not None:
            names = zip(code.co_freevars, child)
            name = next((name for name, cell in names if cell is two), None)
            return {"by": "closure", "name": name, **_described(three)}, at + 3
        if child is function.__defaults__ and two is not None:
            places = [place for place, default in enumerate(child) if default is two]
            first = code.co_argcount - len(child)
            name = code.co_varnames[first + places[0]] if places else None
            return {"by": "default", "name": name, **_described(two)}, at + 2
        if child is function.__kwdefaults__ and two is not None:
            return {"by": "default", "name": self._name_in(child, two), **_described(two)}, at + 2
        return {"by": "reference", **_described(child)}, at + 1

    def _of_error(self, objects: list[Any], at: int) -> tuple[Link, int]:
        """The link to a local variable of a frame that an exception keeps, or to an attribute."""
        value, child = objects[at], objects[at + 1]
        after = at + 1
        while after < len(objects) and type(objects[after]) is types.TracebackType:
            after += 1
        if after + 1 < len(objects) and type(objects[after]) is types.FrameType:
            return self._local(objects[after], objects[after + 1]), after + 1
        name = next((name for name, get in _OF_ERROR.items() if _is(get, value, child)), None)
        return self._attribute(objects, at + 1, name or self._attribute_name(value, child))

    def _of_cache(self, objects: list[Any], at: int) -> tuple[Link, int]:
        """The link to a result that a cache of functools keeps."""
        cache = objects[at]
        after = at + 1
        # The dict of results, and the list by which the oldest is found.
        while after + 1 < len(objects) and (
            type(objects[after]) is dict or type(objects[after]).__name__ == "_lru_list_elem"
        ):
            after += 1
        wrapped = dict.get(plain.attributes(cache) or {}, "__wrapped__")
        code = wrapped.__code__ if type(wrapped) is types.FunctionType else None
        link: Link = {"by": "cache", **_described(objects[after])}
        if code is not None:
            link.update(_place(code, code.co_firstlineno))
        return link, after

    def _of_own_container(self, objects: list[Any], at: int) -> tuple[Link, int]:
        """The link through the containers that a type of the library is made of."""
        after = at + 1
        while after + 1 < len(objects) and type(objects[after]) in (dict, list):
            after += 1
        value, child = objects[after - 1], objects[after]
        name = self._name_in(value, child) if after > at + 1 else None
        if type(objects[at]) is queue.SimpleQueue:
            return {"by": "item", **_described(child)}, after
        return {"by": "attribute", "name": name, **_described(child)}, after

    def _local(self, frame: types.FrameType, child: Any) -> Link:
        names = (name for name, value in locals_of(frame).items() if value is child)
        link: Link = {"by": "frame_local", "name": next(names, None), **_described(child)}
        return {**link, **_place(frame.f_code, frame.f_lineno)}

    def _name_in(self, container: Any, child: Any) -> str | None:
        """The index or key of an item. All items of a container are looked at once."""
        known = self._items.get(id(container))
        if known is None:
            known = self._items[id(container)] = {}
            # Another thread may change the container meanwhile: then some names are not known.
            with contextlib.suppress(RuntimeError):
                for place, (name, item) in enumerate(plain.items(container)):
                    if id(item) in self._wanted:
                        known.setdefault(id(item), plain.item_name(container, name))
                    if place % 65536 == 65535 and time.perf_counter() > self._until:
                        break
        return known.get(id(child))

    def _attribute_name(self, value: Any, child: Any) -> str | None:
        for name, item in plain.members(value):
            if item is child:
                return name
        return self._name_in(plain.attributes(value) or {}, child)


def _place(code: types.CodeType, line: int | None) -> Link:
    name = getattr(code, "co_qualname", code.co_name)[: plain.MAX_NAME]
    return {"function": name, "file": code.co_filename, "line": line}


def _frame_of(value: Any) -> types.FrameType | None:
    name = _GENERATORS.get(type(value))
    frame = getattr(value, name) if name is not None else None
    return frame if type(frame) is types.FrameType else None


def _described(value: Any) -> Link:
    """What a link says of the object that it leads to, or whose type has this name."""
    kind = type(value)
    if kind is str:
        return {"type": value[: plain.MAX_NAME]}
    if kind is types.FunctionType:
        code = value.__code__
        return {"type": "function", **_place(code, code.co_firstlineno)}
    if plain.is_a(value, type):
        return {"type": f"class {plain.class_name(value)}"}
    link: Link = {"type": plain.type_name(value)}
    length = plain.length(value)
    if length is not None:
        link["length"] = length
    return link


def _is(get: Callable[[Any], Any], value: Any, child: Any) -> bool:
    return plain.is_a(value, BaseException) and get(value) is child
