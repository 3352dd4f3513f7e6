"""`vramscope.holders`, as far as it needs no PyTorch. `test_holders.py` has the rest."""

import json
import sys

import pytest

import vramscope
from vramscope import _vramscope, live

FOUND = {
    "complete": True,
    "graph": False,
    "objects": 3,
    "seconds": 0.0,
    "links": [
        {
            "from": None,
            "by": "local",
            "name": "losses",
            "type": "list",
            "length": 2,
            "function": "train",
            "file": "/a/train.py",
            "line": 42,
        },
        {"from": 0, "by": "item", "name": "0", "type": "Tensor"},
        {"from": 0, "by": "item", "name": "1", "type": "Tensor"},
    ],
    "blocks": [
        {"device": 0, "address": 512, "link": 1, "drop": 0},
        {"device": 0, "address": 1024, "link": 2, "drop": 0},
        {"device": 0, "address": 2048, "none": "below_python"},
    ],
    "drops": [{"within": None, "links": [0], "bytes": 3 << 20, "blocks": 2}],
}
SIZES = [(0, 512, 1 << 20), (0, 1024, 2 << 20), (0, 2048, 4 << 20)]


def told(blocks):
    found = {**FOUND, "blocks": [FOUND["blocks"][at] for at in blocks]}
    return json.loads(_vramscope.holders_told(json.dumps(found).encode(), SIZES))


def test_several_blocks_are_told_by_what_drops_free():
    answer = told([0, 1, 2])
    assert answer["bytes"] == 7 << 20
    assert answer["text"].splitlines() == [
        "7.00 MiB in 3 blocks. Dropping frees",
        '  3.00 MiB  local "losses" (list of 2) of train(), train.py:42',
        "  4.00 MiB  held below Python (a running expression, autograd, a CUDA graph or a library)",
        "Autograd graphs and gradients were not read: another thread or a profiler was in the way.",
    ]
    assert [block["kind"] for block in answer["blocks"]] == [
        "below_python",
        "reference",
        "reference",
    ]


def test_the_answer_has_its_record():
    answer = live._answer(FOUND, SIZES)
    assert answer.to_dict() == told([0, 1, 2])
    assert (str(answer), len(answer.blocks)) == (answer.to_dict()["text"], 3)


def test_one_block_is_told_by_its_chain():
    assert told([1])["text"].splitlines()[:3] == [
        '2.00 MiB held by local "losses" (list of 2) of train(), train.py:42',
        "   losses[1]",
        '   dropping "losses" frees 3.00 MiB',
    ]


def test_without_pytorch_there_is_nothing_to_hold(monkeypatch):
    # Another test may have loaded one.
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(vramscope.VramscopeError, match="PyTorch is not imported"):
        vramscope.holders()


def test_a_walk_that_contradicts_itself_is_an_error():
    broken = {**FOUND, "drops": [{"within": 7, "links": [0], "bytes": 1, "blocks": 1}]}
    with pytest.raises(RuntimeError):
        _vramscope.holders_told(json.dumps(broken).encode(), SIZES)
