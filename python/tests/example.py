"""What a user writes, in the types that checkers see: mypy and pyright check it, and it runs.

``test_types.py`` passes the paths of a snapshot and of a folder of ranks.
"""

from __future__ import annotations

import io
import pathlib
import sys
from typing import Any

import vramscope
from vramscope.reader import Diagnosis, Finding, Lever, PeakBy, Table
from vramscope.reader.names import FindingKind, Severity


def main(path: pathlib.Path, folder: str) -> None:
    version: str = vramscope.__version__
    print(version)
    with vramscope.open(path, device=0, max_memory="2GiB") as s:
        diagnosis: Diagnosis = s.diagnosis
        first: Finding = diagnosis.findings[0]
        kind: FindingKind = first.kind
        severity: Severity = first.severity
        levers: list[Lever] = [lever for lever in diagnosis.levers if lever.outcome == "fits"]
        print(kind, severity, len(levers), first.place.line if first.place else None)

        by: PeakBy = "category"
        for row in s.peak(by=by, band="requested").rows[:3]:
            print(row.name, row.live_bytes + row.own_bytes)
        for step in s.steps[1:]:
            print(step.step, step.peak_of("forward"), step.change_bytes)

        blocks: Table = s.blocks
        block: dict[str, Any] = blocks[-1]
        sites: list[Any] = blocks["site"]
        some: Table = blocks[:5]
        print(block["requested_bytes"], len(sites), len(some), some.columns[0])
        print(sum(row["requested_bytes"] for row in blocks))

        answer = s.what_if(expandable_segments=True, device_memory="H100", apply=["batch:0.5"])
        record: dict[str, Any] = answer.to_dict()
        print(record["schema"], answer.to_json(indent=2)[:1], answer.scenarios[0].fits)

    from_bytes = vramscope.open(path.read_bytes())
    from_file = vramscope.open(io.BytesIO(path.read_bytes()), events=(0, 100))
    print(from_bytes.diff(from_bytes).requested.peak.change, from_file.device)

    run = vramscope.open_run(folder)
    print(max(rank.peak().peak_bytes for rank in run), [rank.path for rank in run[1:]])
    try:
        vramscope.open(folder)
    except vramscope.ReadError as error:
        print(error.kind, error.offset)

    recorder: vramscope.Recorder = vramscope.record(folder, stacks="all", holders="every")
    print(recorder.ended_steps)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
