"""Which arguments a kernel of Triton writes, read off its intermediate code."""

from __future__ import annotations

import re

_NAME = re.compile(r"%[\w.$-]+")
_FUNCTION = re.compile(r"tt\.func public @[\w.$]+\((.*)\)")
_DEFINITION = re.compile(r"\s*(%[\w.$-]+)(?::\d+)?(?:, %[\w.$-]+)* = (.*)")
_INITIAL = re.compile(r"(%[\w.$-]+) = (%[\w.$-]+)")
_STORE = re.compile(r"\btt\.(?:\w*store|atomic_\w+|descriptor_(?:reduce|scatter))\b(.*)")
#: What may write through a pointer in a way that is not followed here.
_OPAQUE = re.compile(r"tt\.call|extern_elementwise|inline_asm|ttng\.|cf\.(?:cond_)?br .*!tt\.ptr")
#: Of these only the first operand is the pointer.
_FIRST = re.compile(r"tt\.(?:addptr|advance|make_tensor_\w+)\b")


def stored_arguments(code: str) -> set[str] | None:
    """The names of the arguments that are written; ``None`` if any may be."""
    found = _FUNCTION.search(code)
    if found is None or _OPAQUE.search(code):
        return None
    arguments = {one for one in _NAME.findall(found.group(1))}
    sources: dict[str, set[str]] = {}
    # Pointers that a loop gives to its next round, and the names that have them there.
    given: set[str] = set()
    carried: set[str] = set()
    targets: set[str] = set()
    for line in code.splitlines():
        defined = _DEFINITION.match(line)
        if "iter_args(" in line or "scf.while" in line:
            initial = _INITIAL.findall(line.partition(" = ")[2])
            for name, value in initial:
                sources.setdefault(name, set()).add(value)
                carried.add(name)
            if defined is not None:
                sources.setdefault(defined.group(1), set()).update(one for _, one in initial)
                carried.add(defined.group(1))
        elif "scf.yield" in line or "scf.condition" in line:
            given |= _pointers(line)
        elif defined is not None and "tt.load" not in line:
            operands = _NAME.findall(defined.group(2))
            if "scf.if" in line:
                carried.add(defined.group(1))
            if _FIRST.search(line):
                operands = operands[:1]
            sources.setdefault(defined.group(1), set()).update(operands)
        store = _STORE.search(line)
        if store is not None:
            targets.update(_NAME.findall(store.group(1))[:1])
    for name in carried:
        sources.setdefault(name, set()).update(given)
    return {one[1:] for one in _reached(targets, sources) & arguments}


def _pointers(line: str) -> set[str]:
    values, _, types = line.partition(" : ")
    names = _NAME.findall(values)
    kinds = types.split(" loc(")[0].split(", ")
    if len(kinds) != len(names):
        return set(names)
    return {name for name, kind in zip(names, kinds) if "!tt.ptr" in kind}


def _reached(targets: set[str], sources: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(targets)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += sources.get(name, ())
    return reached
