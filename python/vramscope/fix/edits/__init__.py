"""Edits of a program's source, one for each change that is made with certainty."""

from __future__ import annotations

from typing import Callable

from ..lever import Lever
from ..rewrite import Declined
from ..sources import Sources
from . import around, blocks, constructors, gradients, holders, parts, sizes

#: Makes the changes in the trees of the sources. Returns what it did, in words.
#:
#: Raises:
#:     Declined: The source does not show with certainty how.
Edit = Callable[[Lever, Sources], str]

#: The edits by the change, without its value.
_OF_CHANGES: dict[str, Edit] = {
    "accumulate": sizes.accumulate,
    "autocast_cache": constructors.autocast_cache,
    "batch": sizes.batch,
    "checkpoint": blocks.checkpoint,
    "del": holders.drop,
    "drop": holders.drop,
    "eval": around.no_grad,
    "eval_batch": sizes.eval_batch,
    "foreach": constructors.foreach,
    "in_parts": parts.in_parts,
    "offload_activations": around.offload,
    "optimizer": constructors.optimizer,
    "upcast": parts.upcast,
    "zero_grad": gradients.zero_grad,
}
#: The edits by the finding that they cure.
_OF_FINDINGS: dict[str, Edit] = {
    "buckets": constructors.bucket_views,
    "growth": holders.drop,
    "gradients_held": gradients.frozen,
    "idle_model": holders.idle,
    "no_grad": around.no_grad,
    "one_piece": blocks.each,
    "peak_cause": constructors.peak_cause,
}


#: The kinds of findings whose cure is an edit.
CURABLE = frozenset(_OF_FINDINGS)


def edit(lever: Lever, sources: Sources) -> str:
    """Makes the edit of a lever in the trees of the sources. Returns what it did, in words.

    Raises:
        Declined: No edit can be made with certainty: why.
    """
    own = _OF_CHANGES.get(lever.recipe or "") or _OF_FINDINGS.get(lever.cures or "")
    if own is None and lever.recipe is None and lever.holders:
        own = holders.idle if "idle" in lever.text else holders.drop
    if own is None:
        raise Declined("no edit of the source is known for it")
    return own(lever, sources)
