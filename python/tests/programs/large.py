"""A program with very many objects: a chain, a tree, a wide list, a module of many variables.

Prints a line of JSON: how long the program has waited, and what was written.
"""

import gc
import json
import sys
import time
import types

import torch

from vramscope.recorder import holders

SHAPE, COUNT, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


class Node:
    def __init__(self, next=None):
        self.next = next


def block():
    return torch.empty(8 << 20, dtype=torch.uint8, device="cuda")


def chain():
    first = Node(block())
    for _ in range(COUNT):
        first = Node(first)
    return first


def pairs():
    first = [block()]
    for _ in range(COUNT):
        first = [first]
    return first


def tree():
    level = [[block()] for _ in range(8)] + [[] for _ in range(COUNT // 2)]
    while len(level) > 1:
        level = [level[at : at + 2] for at in range(0, len(level), 2)]
    return level


def wide():
    return [[] for _ in range(COUNT)] + [[block()], block()]


def ring():
    """Garbage: only its own references hold it."""
    items = [[block()], *([] for _ in range(COUNT))]
    for at, item in enumerate(items):
        item.append(items[at - 1])
        item.append(items)


def keyed():
    return {(at,): [at] for at in range(COUNT)} | {"last": block()}


def module():
    made = types.ModuleType("many")
    made.__dict__.update({f"name{at}": [] for at in range(COUNT)}, last=block())
    sys.modules["many"] = made


def instance():
    node = Node(block())
    node.__dict__.update({f"name{at}": [] for at in range(COUNT)})
    node.kept = [block() for _ in range(300)]
    return node


gc.disable()
kept = globals()[SHAPE]()
blocks = holders.live_blocks(torch.cuda.memory_snapshot())
begin = time.perf_counter()
told = holders.find(torch, blocks, seconds=SECONDS)
seconds = time.perf_counter() - begin
text = json.dumps(told)
print(json.dumps({"seconds": seconds, "bytes": len(text), "told": told}), flush=True)
# Python would go down the chain to free it.
sys.stdout.flush()
import os  # noqa: E402

os._exit(0)
