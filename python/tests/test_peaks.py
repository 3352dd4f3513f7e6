"""What holds memory at a peak, by all that rows can be.

Needs the installed wheel, as ``cargo xtask test wheel`` installs it. The recorded program is a GPT
of 12 layers, 768 wide, with a feed-forward part of 3,072 and 50,304 words: parameters of 4 bytes.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import typing

import pytest

import vramscope
from vramscope.reader import Row, names

DATA = pathlib.Path(__file__).parents[2] / "test_data"
OOM = DATA / "recorded" / "oom_expandable.pickle.gz"
KEPT = DATA / "beside" / "uses_kept" / "rank0_memory_snapshot.pickle.gz"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")


@pytest.fixture(scope="module")
def snapshot() -> vramscope.Snapshot:
    return vramscope.open(OOM)


@pytest.mark.parametrize("by", typing.get_args(names.PeakBy))
def test_own_bytes_add_up_to_the_peak(snapshot, by: str) -> None:
    # Uses are known of a traced step.
    peak = (vramscope.open(KEPT) if by == "use" else snapshot).peak(by=by)
    assert (peak.by, len(peak.rows) > 0) == (by, True)
    own = sum(row.own_bytes for row in peak.rows)
    if by == "line":
        # Blocks of backward's threads have no line of the program.
        def is_own(row: Row) -> bool:
            return any(frame.file.endswith(("/gpt.py", "/p_oom.py")) for frame in row.frames)

        stacks = snapshot.peak(by="stack").rows
        assert own == sum(row.live_bytes for row in stacks if is_own(row)) < peak.peak_bytes
    else:
        assert own == peak.peak_bytes
    if by not in ("line", "module", "holder"):
        assert sum(row.blocks for row in peak.rows) == peak.blocks
        assert all(row.live_bytes == row.own_bytes for row in peak.rows)


def program(*arguments: object) -> dict:
    """The program's JSON."""
    command = [PROGRAM, *map(str, arguments), "--format", "json"]
    run = subprocess.run(command, capture_output=True, check=True)
    return json.loads(run.stdout)


def test_rows_are_those_of_the_program(snapshot) -> None:
    told = program("peak", OOM)
    for by, rows in (
        ("site", told["sites"]),
        ("category", told["categories"]),
        ("stream", told["streams"]),
        ("pool", told["pools"]),
    ):
        assert [(row.live_bytes, row.blocks) for row in snapshot.peak(by=by).rows] == [
            (row["bytes"], row["blocks"]) for row in rows
        ]
    assert [row.name for row in snapshot.peak().rows] == [row["site"] for row in told["sites"]]
    root = program("peak", OOM, "--by", "module")["root"]
    assert [(one.path, one.live_bytes) for one in snapshot.modules.root.children] == [
        (one["path"], one["bytes"]) for one in root["children"]
    ]
    told = program("peak", OOM, "--by", "shape")
    assert [(one.site, one.live_bytes, one.is_certain) for one in snapshot.shapes.rows] == [
        (one["site"], one["bytes"], one["is_certain"]) for one in told["rows"]
    ]


def test_rows_can_be_all_that_they_can_be_in_the_program() -> None:
    command = [PROGRAM, "peak", "--by", "nothing", str(OOM)]
    run = subprocess.run(command, capture_output=True, check=False, text=True)
    (values,) = re.findall(r"possible values: ([\w,\s]+)", run.stderr)
    assert set(re.split(r",\s*", values.strip())) == set(typing.get_args(names.PeakBy))


@pytest.mark.parametrize("band", ["active", "allocated", "reserved"])
def test_sites_and_stacks_of_other_bands_add_up(snapshot, band: str) -> None:
    for by in ("site", "stack"):
        peak = snapshot.peak(by=by, band=band)
        assert sum(row.live_bytes for row in peak.rows) == peak.peak_bytes
        assert sum(row.blocks for row in peak.rows) == peak.blocks


def test_lines_are_lines_of_the_program(snapshot) -> None:
    rows = snapshot.peak(by="line").rows
    files = {row.name.split(":")[0] for row in rows}
    # No interpreter, no C++, no PyTorch.
    assert files == {"gpt.py", "p_oom.py"}
    # The call of the model has all that the model holds at the peak.
    call = next(row for row in rows if row.name.startswith("p_oom.py:32"))
    below = [row for row in rows if row.name.startswith("gpt.py:42")]
    assert call.live_bytes > below[0].own_bytes
    assert [row.live_bytes for row in rows] == sorted((r.live_bytes for r in rows), reverse=True)


def test_modules_are_those_of_the_tree(snapshot) -> None:
    modules = [module for module in snapshot.modules if module.blocks]
    rows = snapshot.peak(by="module").rows
    assert len(rows) == len(modules) > 12
    for row, module in zip(rows, modules, strict=True):
        assert (row.name, row.live_bytes, row.blocks) == (
            module.path,
            module.live_bytes,
            module.blocks,
        )
        assert row.name.count(" / ") == row.depth
        assert sum(module.categories_bytes.values()) == module.live_bytes
    # The blocks of the model are a module with 12 layers, when they are built and when they run.
    layered = [module for module in modules if module.layers is not None]
    assert {len(module.children) for module in layered} == {12}
    assert {module.layers for module in layered} == {12}
    assert any("forward" in module.path for module in layered)
    root = snapshot.modules.root
    assert root.live_bytes == snapshot.peak().peak_bytes == sum(r.live_bytes for r in root.children)


def test_shapes_are_those_of_the_model(snapshot) -> None:
    shapes = snapshot.shapes
    (dims,) = shapes.dims
    assert (dims.hidden, dims.element_bytes) == (768, 4)
    assert {768, 2304, 3072, 50304} <= set(dims.widths)
    known = {of.shape.dims: of for of in shapes.by_shape}
    # Two feed-forward matrices in each of 12 layers; Adam keeps two states of each.
    feed_forward = known[3072, 768]
    assert feed_forward.blocks == 12 * 2 * 3
    assert feed_forward.live_bytes == feed_forward.blocks * 3072 * 768 * 4
    parts = (shapes.shaped_bytes, shapes.doubtful_bytes, shapes.other_bytes)
    assert sum(parts) == shapes.peak_bytes == snapshot.peak().peak_bytes
    rows = {row.name: row for row in snapshot.peak(by="shape").rows}
    assert rows[feed_forward.shape.text].live_bytes == feed_forward.live_bytes
    assert rows["several shapes fit"].live_bytes == shapes.doubtful_bytes
    assert rows["no shape is known"].live_bytes == shapes.other_bytes


def test_streams_and_pools_are_those_of_blocks(snapshot) -> None:
    event = snapshot.peak().event
    live = [
        block
        for block in snapshot.blocks
        if (block["alloc_event"] is None or block["alloc_event"] <= event)
        and (block["free_completed_event"] is None or block["free_completed_event"] > event)
    ]
    for by, column in (("stream", "stream"), ("pool", "segment_type")):
        sums: dict[str, int] = {}
        for block in live:
            sums[block[column]] = sums.get(block[column], 0) + block["requested_bytes"]
        rows = snapshot.peak(by=by).rows
        assert sorted(row.live_bytes for row in rows) == sorted(filter(None, sums.values()))


def test_types_have_the_names_of_the_program() -> None:
    """A new kind, severity or outcome belongs into ``names.py``."""

    def enums(of: object) -> typing.Iterator[set[str]]:
        if isinstance(of, dict):
            values = of.get("enum") or [one.get("const") for one in of.get("oneOf", ())]
            if values and all(isinstance(value, str) for value in values):
                yield set(values)
            for below in of.values():
                yield from enums(below)
        elif isinstance(of, list):
            for below in of:
                yield from enums(below)

    command = [PROGRAM, "schema", "diagnose"]
    schema = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    known = list(enums(json.loads(schema)))
    for literal in (names.FindingKind, names.Severity, names.Outcome, names.Cost, names.Covers):
        assert set(typing.get_args(literal)) in known, literal


def test_the_uses_of_a_traced_step_are_known() -> None:
    kept = vramscope.open(KEPT)
    uses = kept.uses
    assert (uses.refused, uses.step, uses.bytes_of("dead") >> 20) == (None, 3, 80)
    assert (uses.peak_bytes - uses.floor_bytes) >> 20 == 80
    assert [row.last_operation for row in uses.rows][:2] == ["aten._log_softmax", "aten.clone"]
    by_use = kept.peak(by="use")
    assert by_use.peak_bytes == sum(row.live_bytes for row in by_use.rows) == uses.peak_bytes
    untraced = vramscope.open(DATA / "recorded/gpt_leak.pickle.gz")
    assert untraced.uses.refused is not None
    with pytest.raises(ValueError, match="nothing is known of uses: no step was traced"):
        untraced.peak(by="use")
