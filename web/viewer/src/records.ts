// Blocks and findings as the program prints them in JSON, for scripts around the element. The
// worker writes the JSON; this finds one record in it.

import type { Table } from "./generated/protocol.js";
import type { ProgramRecord } from "./program-record.js";
import type { Selection } from "./selection.js";

/** The parts of a block's record that tell it from others at its address. */
interface BlockRecord extends ProgramRecord {
  address: string;
  alloc_event: number | null;
  free_requested_event: number | null;
  free_completed_event: number | null;
  preexisting: boolean;
  stack: number;
  shape?: number;
}

interface Blocks {
  blocks: BlockRecord[];
  stacks: unknown[];
  shapes: unknown[];
}

const REFERENCE = /^(\d+):(0x[0-9a-f]+)@(?:(pre)|(~?)(\d+))$/;

async function ask<T>({ target }: Selection, what: Table): Promise<T | null> {
  const query = { export: { what, form: "json" as const } };
  const text = await target?.client.view(target.target, "text", query);
  return text ? (JSON.parse(text) as T) : null;
}

const endOf = ({ free_requested_event: asked, free_completed_event: done }: BlockRecord) =>
  asked ?? done ?? Number.POSITIVE_INFINITY;

/** A block whose alloc is lost counts from an event: the first at its address to end later. */
function lost(blocks: readonly BlockRecord[], event: number): BlockRecord | undefined {
  return blocks
    .filter((block) => block.alloc_event === null && !block.preexisting && endOf(block) >= event)
    .sort((a, b) => endOf(a) - endOf(b))[0];
}

async function blockOf(
  selection: Selection,
  [reference, device, address, pre, tilde, at]: readonly (string | undefined)[],
): Promise<ProgramRecord | null> {
  if (address === undefined || Number(device) !== selection.target?.target.device) return null;
  const answer = await ask<Blocks>(selection, {
    blocks: {
      table: { text: address, category: "", liveAt: null, sort: "allocated", descending: false },
    },
  });
  const here = answer?.blocks.filter((block) => block.address === address) ?? [];
  const event = Number(at);
  let block: BlockRecord | undefined;
  if (pre) block = here.find(({ preexisting }) => preexisting);
  else if (tilde) block = lost(here, event);
  else block = here.find(({ alloc_event }) => alloc_event === event);
  if (answer === null || block === undefined) return null;
  const { stack, shape, ...fields } = block;
  return {
    reference,
    device: Number(device),
    ...fields,
    ...(shape !== undefined && { shape: answer.shapes[shape] }),
    frames: answer.stacks[stack],
  };
}

async function findingOf(selection: Selection, id: string): Promise<ProgramRecord | null> {
  const answer = await ask<{ anomalies: ProgramRecord[] }>(selection, { findings: {} });
  return answer?.anomalies.find(({ id: known }) => known === id) ?? null;
}

/** The block with this reference, or the finding with this id; null if the trace has none. */
export function recordOf(selection: Selection, id: string): Promise<ProgramRecord | null> {
  const block = REFERENCE.exec(id);
  return block ? blockOf(selection, block) : findingOf(selection, id);
}
