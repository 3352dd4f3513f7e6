import { expect, test } from "vitest";
import { recordOf } from "./records.js";
import type { Selection } from "./selection.js";

const block = (alloc: number | null, freed: number | null, preexisting = false) => ({
  address: "0x10",
  alloc_event: alloc,
  free_requested_event: freed,
  free_completed_event: freed,
  preexisting,
  stack: 0,
  ...(alloc === 7 && { shape: 0 }),
});

/** A selection whose worker answers with blocks at an address, or with findings. */
function selection(): Selection {
  const blocks = [
    block(null, 2, true),
    block(null, 5),
    block(7, 9),
    block(null, 20),
    { ...block(7, null), address: "0x100" },
  ];
  const answers = {
    blocks: { blocks, stacks: [[{ name: "f" }]], shapes: [{ text: "(2, 3)" }] },
    findings: { anomalies: [{ id: "growth-0-1", bytes: 5 }] },
  };
  const view = async (_target: unknown, _kind: string, query: { export: { what: object } }) =>
    JSON.stringify("blocks" in query.export.what ? answers.blocks : answers.findings);
  return { target: { client: { view }, target: { part: 0, device: 0 } } } as unknown as Selection;
}

test("a reference names one block of its address", async () => {
  const of = (reference: string) => recordOf(selection(), reference);
  const ends = (event: number) => ({ free_requested_event: event });
  expect(await of("0:0x10@pre")).toMatchObject(ends(2));
  expect(await of("0:0x10@7")).toMatchObject(ends(9));
  // A block whose alloc is lost is the first to end after the event from which it counts.
  expect(await of("0:0x10@~3")).toMatchObject(ends(5));
  expect(await of("0:0x10@~12")).toMatchObject(ends(20));
});

test("a block has its reference, frames and shape", async () => {
  expect(await recordOf(selection(), "0:0x10@7")).toEqual({
    reference: "0:0x10@7",
    device: 0,
    address: "0x10",
    alloc_event: 7,
    free_requested_event: 9,
    free_completed_event: 9,
    preexisting: false,
    shape: { text: "(2, 3)" },
    frames: [{ name: "f" }],
  });
});

test("a finding is found by its id", async () => {
  expect(await recordOf(selection(), "growth-0-1")).toEqual({ id: "growth-0-1", bytes: 5 });
});

test("what the trace lacks is null", async () => {
  for (const id of ["0:0x10@8", "0:0x20@7", "1:0x10@7", "growth-0-2", ""])
    expect(await recordOf(selection(), id)).toBeNull();
});
