// The command line on files that a test names by their paths: what it prints as JSON, the page must show.

import { print } from "./cli.js";

/** `memstrata <args> --format json`, as a value. */
export const cli = <T>(...args: string[]) => print(".", args) as T;

export interface Frame {
  name: string;
  file: string;
  line: number;
}

/** A block of `memstrata blocks`. */
export interface CliBlock {
  address: string;
  reuse: number;
  bytes: number;
  block_bytes: number;
  category: string;
  alloc_event: number | null;
  free_requested_event: number | null;
  free_completed_event: number | null;
  preexisting: boolean;
  live_at_end: boolean;
  of_free: boolean;
  site: string;
  frames: Frame[];
}

interface Band {
  start: number;
  peak: number;
  peak_event: number;
  end: number;
}

/** A device of `memstrata summary`. */
export interface CliDevice {
  device: number;
  events: number;
  segments: number;
  requested_bytes: Band;
  reserved_bytes: Band;
}

/** All blocks of the file's first device, as the program lists them. */
export const blocksOf = (file: string, ...more: string[]) =>
  cli<{ blocks: CliBlock[] }>("blocks", file, ...more).blocks;

/** The devices of a file. */
export function devicesOf(file: string): CliDevice[] {
  const [first] = cli<{ files: { devices: CliDevice[] }[] }>("summary", file).files;
  return first?.devices ?? [];
}

/** The first device of a file. */
export function deviceOf(file: string): CliDevice {
  const [device] = devicesOf(file);
  if (!device) throw new Error(`${file} has no device`);
  return device;
}

/** What is held after an event. */
export const stateOf = (file: string, event: number) =>
  cli<{
    event: number;
    time_us: number;
    requested_bytes: number;
    active_bytes: number;
    reserved_bytes: number;
    blocks: unknown[];
  }>("state", file, "--event", String(event));

interface CliAnomaly {
  id: string;
  kind: string;
  bytes: number;
  text: string;
  events: number[];
}

export const anomaliesOf = (file: string) => cli<{ anomalies: CliAnomaly[] }>("anomalies", file).anomalies;

/** The name that a block keeps: `0:0x1000@1`. */
export const referenceOf = ({ address, alloc_event, preexisting }: CliBlock, device = 0) =>
  `${device}:${address}@${preexisting ? "pre" : alloc_event}`;
