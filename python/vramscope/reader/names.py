"""The names that arguments and answers have, as types for checkers and editors."""

from __future__ import annotations

from typing import Literal, Union

#: Totals of ``torch.cuda.memory_stats()``.
Band = Literal["requested_bytes", "active_bytes", "allocated_bytes", "reserved_bytes"]

#: The bands as arguments: ``_bytes`` may be left out.
BandName = Union[Band, Literal["requested", "active", "allocated", "reserved"]]

#: What the rows of a peak are.
PeakBy = Literal[
    "site", "stack", "line", "module", "shape", "holder", "use", "category", "stream", "pool"
]

#: What holds blocks.
HolderKind = Literal["reference", "cycle", "below_python", "unread"]

#: What a row of holders is: also why nothing is known.
HolderRowKind = Union[HolderKind, Literal["freed", "not_listed", "not_recorded"]]

#: What becomes of memory in a traced step.
UseGroup = Literal["dead", "far", "overwritten", "soon", "now", "kept", "not_seen"]

Severity = Literal["high", "medium", "low"]

#: Kinds of findings.
FindingKind = Literal[
    "oom",
    "growth",
    "cycle",
    "gradients_held",
    "held_too_long",
    "no_grad",
    "one_piece",
    "buckets",
    "gathered",
    "loaded",
    "table",
    "peak_cause",
    "idle_model",
    "rank_skew",
    "reserved",
    "stranded_pool",
    "pending_free",
    "churn",
    "dead_at_peak",
    "pinned",
]

#: Whether a run goes through.
Outcome = Literal["fits", "fits_barely", "short", "unknown"]

#: How the numbers of a lever were obtained.
LeverBasis = Literal["replayed", "estimated"]

#: Categories of blocks.
Category = Literal[
    "parameter",
    "gradient",
    "optimizer_state",
    "buffer",
    "input",
    "activation",
    "temporary",
    "workspace",
    "communication",
    "cache",
    "unknown",
]

#: The category of several blocks.
MixedCategory = Union[Category, Literal["mixed"]]

#: Phases of a step.
PhaseName = Literal["forward", "backward", "optimizer", "evaluation", "generation", "other"]

Exactness = Literal["exact", "estimate"]

#: How the numbers that prove a finding are drawn.
ProofForm = Literal["columns", "parts", "curve", "lives"]

#: The unit of such numbers.
ProofUnit = Literal["bytes", "count"]

#: What shows that several dumps are of one process.
ProcessEvidence = Literal["events", "blocks", "names"]

#: When the memory of a process is compared.
ProcessWhen = Literal["last_step", "dump"]

#: What tells a shape.
ShapeSource = Literal["sidecar", "annotation", "shape_data", "size"]

#: How call stacks of two snapshots were matched.
Matched = Literal["same", "moved", "only_a", "only_b"]

#: How the numbers of a finding were obtained.
Basis = Literal["recorded", "exact", "estimate"]

#: How the numbers of a prediction were obtained.
SimulatedBasis = Literal["simulated", "recipe", "estimate"]

#: How it is known what PyTorch can have on a device.
CapacityBasis = Literal["exact", "bounded", "measured", "other_rank", "changing", "unknown"]

#: What a change costs.
Cost = Literal["none", "edit", "time", "precision", "batch"]

#: The part of a run that was replayed.
Covers = Literal["run", "steps", "step", "request"]

#: The part of a run that a trace has.
Coverage = Literal["whole", "partial", "none"]
