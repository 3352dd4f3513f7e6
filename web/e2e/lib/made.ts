// Synthetic snapshots in JSON, with the fields that PyTorch writes.

import { writeFileSync } from "node:fs";
import type { FrameRow } from "./cli.js";

/** An event of the trace; `at` is in microseconds from the start of the window. */
export interface Made {
  at: number;
  action: "alloc" | "free_requested" | "free_completed" | "segment_alloc" | "segment_free" | "oom";
  addr: number;
  size: number;
  /** Name of the innermost frame. The outer frames are the same in all stacks. */
  in?: string;
  device_free?: number;
}

export interface MadeBlock {
  address: number;
  size: number;
  requested: number;
  state: "active_allocated" | "active_pending_free" | "inactive";
  in?: string;
}

export interface MadeSegment {
  address: number;
  size: number;
  blocks: MadeBlock[];
}

/** Start of the window, in microseconds since the Unix epoch. */
export const CLOCK = 1_700_000_000_000_000;

const frame = ({ name, file, line }: FrameRow) => ({ name, filename: file, line });

const stack = (name: string) =>
  [
    { name, file: "/train/made.py", line: 10 },
    { name: "step", file: "/train/loop.py", line: 20 },
    { name: "<module>", file: "/train/main.py", line: 5 },
  ].map(frame);

/** The events of a block: its alloc, and its free if `to` is given. */
export function life(
  addr: number,
  size: number,
  from: number,
  to?: number,
  name = "alloc",
): Made[] {
  const alloc: Made = { at: from, action: "alloc", addr, size, in: name };
  if (to === undefined) return [alloc];
  return [
    alloc,
    { at: to, action: "free_requested", addr, size, in: `free_${name}` },
    { at: to, action: "free_completed", addr, size, in: `free_${name}` },
  ];
}

/** A file with a trace of one device. Events are sorted by time, and ties keep their order. */
export function made(
  name: string,
  events: Made[],
  segments: MadeSegment[],
): { name: string; mimeType: string; buffer: Buffer } {
  const trace = events
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, in: inner, ...event }) => ({
      stream: 0,
      ...event,
      time_us: CLOCK + at,
      frames: stack(inner ?? event.action),
    }));
  const final = segments.map(({ address, size, blocks }) => {
    const sum = (of: (block: MadeBlock) => number) =>
      blocks.reduce((all, block) => all + of(block), 0);
    return {
      device: 0,
      address,
      total_size: size,
      allocated_size: sum((block) => (block.state === "active_allocated" ? block.size : 0)),
      active_size: sum((block) => (block.state === "inactive" ? 0 : block.size)),
      requested_size: sum(({ requested }) => requested),
      stream: 0,
      segment_type: "large",
      segment_pool_id: [0, 0],
      is_expandable: false,
      frames: [],
      blocks: blocks.map(({ address: at, size: bytes, requested, state, in: inner }) => ({
        address: at,
        size: bytes,
        requested_size: requested,
        state,
        frames: inner === undefined ? [] : stack(inner),
      })),
    };
  });
  const snapshot = {
    segments: final,
    device_traces: [trace],
    allocator_settings: {},
    external_annotations: [],
  };
  return { name, mimeType: "application/json", buffer: Buffer.from(JSON.stringify(snapshot)) };
}

/** Writes a file to disk, for the command line. */
export function onDisk(file: { buffer: Buffer }, path: string): string {
  writeFileSync(path, file.buffer.toString("utf8"));
  return path;
}
