// Reports of the command line, which the page must match.
// Long because each report has its type here.

import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { testData } from "./data.js";

const { VRAMSCOPE } = process.env;

/** Path of the program. VRAMSCOPE is relative to web/e2e. */
export const program = resolve(
  fileURLToPath(new URL("../", import.meta.url)),
  VRAMSCOPE ?? "../../target/debug/vramscope",
);

export type Band = "requested_bytes" | "active_bytes" | "allocated_bytes" | "reserved_bytes";
export const BANDS: readonly Band[] = [
  "requested_bytes",
  "active_bytes",
  "allocated_bytes",
  "reserved_bytes",
];

export interface FrameRow {
  name: string;
  file: string;
  line: number;
}

export interface CategoryRow {
  category: string;
  bytes: number;
  blocks: number;
}

interface Curve {
  start: number;
  peak: number;
  peak_event: number;
  end: number;
}

export type Change = "came" | "went" | "stayed";
export const CHANGES: readonly Change[] = ["came", "went", "stayed"];
type ChangeSums = Record<Change, { bytes: number; blocks: number }> & { net_bytes: number };

interface Reports {
  summary: {
    files: {
      path: string;
      warnings: { code: string; message: string }[];
      devices: ({
        device: number;
        events: number;
        actions: Record<string, number>;
        ooms: { event: number }[];
        segments: number;
      } & Record<Band, Curve>)[];
    }[];
  };
  peak: {
    event: number;
    total: number;
    blocks: number;
    categories: CategoryRow[];
    ledger: {
      captures: { added: number; reused: number; kept: number }[];
      sums: Record<
        "weights" | "caches" | "graphs" | "workspaces" | "activations" | "other" | "free",
        number
      >[];
    };
    peaks: { event: number; bytes: number; next_lower_bytes: number | null; text: string[] }[];
    around: { event: number; bytes: number; requested_bytes: number; address: string }[];
    sites: { category: string; site: string; bytes: number; blocks: number }[];
    stacks: {
      bytes: number;
      site: string;
      /** The source line of the call site, from the file beside the snapshot. */
      source?: string;
      category: string | null;
      /** Of a mixed row. */
      categories?: CategoryRow[];
      shape?: ShapeRecord;
      frames: FrameRow[];
    }[];
  };
  state: {
    event: number;
    time_us: number;
    blocks: { address: string; bytes: number; block_bytes: number; category: string }[];
    categories: CategoryRow[];
    segments: SegmentRow[];
  } & Record<Band, number>;
  changes: {
    from: { event: number };
    to: { event: number };
    by_category: (ChangeSums & { category: string })[];
    by_site: (ChangeSums & { site: string; of_free: boolean })[];
    mapped_bytes: number;
    released_bytes: number;
  } & Record<Change, { bytes: number; blocks: number }>;
  steps: {
    steps: {
      step: number;
      whole: boolean;
      begin: number;
      end: number;
      peak_bytes: number;
      floor_bytes: number | null;
      change: number | null;
    }[];
    growth_text: string[];
  };
  segments: {
    event: number;
    segments: SegmentRow[];
    free: { reserved: number; active: number; free: number; largest_free: number }[];
    pins: { segment: string; blocks: number; kept: number; largest_block: string }[];
    curve?: {
      events: number[];
      largest_free: { segment_type: string; stream: number; most: number; bytes: number[] }[];
    };
  };
  flame: {
    total: number;
    nodes: (FrameRow & {
      parent: number;
      depth: number;
      own: number;
      total: number;
      blocks: number;
    })[];
  };
  modules: {
    text: string[];
    phases: { phase: string; bytes: number }[];
    root: ModuleRecord;
  };
  shapes: {
    dims: { hidden: number }[];
    legend: { name: string; text: string }[];
    refused: string | null;
    by_shape: { shape: { text: string; symbols?: string }; blocks: number; bytes: number }[];
  };
  holders: {
    bytes: number;
    rows: {
      holder: string;
      depth: number;
      search: string | null;
      bytes: number;
      blocks: number;
      end_bytes: number;
      frees_bytes: number | null;
    }[];
    drops: { text: string; depth: number; bytes: number }[];
  };
  source: {
    file: { file: string; found: string | null; basis: string | null };
    lines: ({
      line: number;
      functions: string[];
      text: string | null;
      id: string;
    } & PlaceNumbers)[];
    functions: ({ function: string; line: number } & PlaceNumbers)[];
    files: ({ file: string } & PlaceNumbers)[];
    text: string[];
  };
  "what-if": {
    declined: string | null;
    calibration: {
      recorded_reserved_peak: number;
      capacity: { bytes: number | null };
    } | null;
    scenarios: ScenarioRecord[];
  };
  ranks: {
    runs: {
      text: string[];
      clusters: { ranks: number[]; text: string }[];
      columns: { rank: number; path: string; usual_rank: number; peak_bytes: number }[];
      rows: { site: string; median: number; max: number; bytes: number[] }[];
      outliers: { rank: number; text: string }[];
    }[];
  };
  blocks: { total: number; blocks: BlockRow[] };
  diagnose: { findings: FindingRecord[]; blind_spots: { kind: string; text: string }[] };
  info: {
    files: {
      stacks: number;
      frames: number;
      settings: [key: string, json: string][];
      annotations: Record<string, number>;
      warnings: { count: number }[];
      devices: {
        device: number;
        events: number;
        window_us: number | null;
        coverage: string;
        provenance: string;
        steps: number;
      }[];
    }[];
  };
}

/** The memory of a place in the code. */
export interface PlaceNumbers {
  bytes: number;
  own_bytes: number;
  event_bytes?: number;
  own_event_bytes?: number;
  bytes_per_step: number | null;
  own_bytes_per_step: number | null;
  blocks: number;
  own_blocks: number;
}

export interface ModuleRecord {
  name: string;
  path: string;
  basis: "recorded" | "inferred" | null;
  layers?: number;
  bytes: number;
  blocks: number;
  event_bytes?: number;
  forward_bytes: number | null;
  backward_bytes: number | null;
  optimizer_bytes: number | null;
  children: ModuleRecord[];
}

export interface ScenarioRecord {
  change: string;
  reserved_peak: number;
  active_peak: number;
  flushes: number;
  ooms: number[];
  fits: boolean;
  least_device_memory: number | null;
}

export interface SegmentRow {
  address: string;
  total_size: number;
  allocated: number;
  active: number;
  requested: number;
  free: number;
  largest_free: number;
  blocks: { address: string; size: number; state: string }[];
}

export interface BlockRow {
  address: string;
  reuse: number;
  bytes: number;
  block_bytes: number;
  category: string;
  alloc_event: number | null;
  free_requested_event: number | null;
  free_completed_event: number | null;
  lifetime: number;
  preexisting: boolean;
  live_at_end: boolean;
  /** `frames` are the call stack of the free. */
  of_free: boolean;
  /** What the file beside the snapshot says. */
  tensor?: { kind: string; name: string; shape: number[]; dtype: string };
  holders?: { text: string; path?: string; drop?: string; frees_bytes: number | null }[];
  stream: number;
  site: string;
  shape?: ShapeRecord;
  frames: FrameRow[];
}

export interface ShapeRecord {
  text: string;
  is_certain: boolean;
  source: "sidecar" | "annotation" | "size";
}

/** A shape as the page writes it: with a question mark if it is in doubt. */
export const shapeWords = ({ text, is_certain }: ShapeRecord) => (is_certain ? text : `${text}?`);

export interface FindingRecord {
  id: string;
  kind: string;
  severity: "high" | "medium" | "low";
  path: string;
  bytes: number;
  title: string;
  text: string;
  action: string;
  step: number | null;
  phase: string | null;
  events: number[];
  children: { site: string; bytes: number; blocks: number }[];
  sites: string[];
  proof?: { form: string; title: string; values: number[]; marked: number[]; text: string };
}

/** Runs the program in a folder with `--format json`. */
export function print(folder: string, args: string[]): unknown {
  const all = [...args, "--format", "json"];
  const out = execFileSync(program, all, {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    stdio: "pipe",
  });
  return withFrames(JSON.parse(out));
}

/** Gives each row of a report the frames of its call stack, and its shape, in place of indices. */
export function withFrames<R extends object>(report: R): R {
  const lists = Object.values(report).filter(Array.isArray);
  const shapes = "shapes" in report && Array.isArray(report.shapes) ? report.shapes : [];
  const stacks = "stacks" in report && Array.isArray(report.stacks) ? report.stacks : [];
  for (const row of lists.flat()) {
    if (typeof row?.shape === "number") row.shape = shapes[row.shape];
    if (typeof row?.stack !== "number") continue;
    row.frames = stacks[row.stack];
    delete row.stack;
  }
  return report;
}

/** Reports that are forms of another command's. */
const FORMS = new Map<keyof Reports, string[]>([
  ["flame", ["peak", "--tree"]],
  ["modules", ["peak", "--by", "module"]],
  ["shapes", ["peak", "--by", "shape"]],
  ["holders", ["peak", "--by", "holder"]],
]);

/** Runs the program over files, by their names in a folder. */
export function cliIn<C extends keyof Reports>(
  folder: string,
  command: C,
  ...rest: string[]
): Reports[C] {
  return print(folder, [...(FORMS.get(command) ?? [command]), ...rest]) as Reports[C];
}

/** Reports on files of test_data/ by their arguments: those files do not change. */
const reports = new Map<string, unknown>();

/**
 * Runs the program over a file, named by its path or relative to test_data/. Reports on files of
 * test_data/ are kept for the other tests of this process, so callers must not change them.
 */
export function cli<C extends keyof Reports>(
  command: C,
  file: string,
  ...rest: string[]
): Reports[C] {
  const root = testData("");
  const key = resolve(root, file).startsWith(root) && JSON.stringify([command, file, ...rest]);
  const known = key === false ? undefined : reports.get(key);
  const report = known ?? cliIn(root, command, file, ...rest);
  if (key !== false) reports.set(key, report);
  return report as Reports[C];
}

/** What changed from the state after one event to that after another. */
export const changesOf = (file: string, from: number, to: number) =>
  cli("state", file, "--from", String(from), "--to", String(to)) as unknown as Reports["changes"];

/** The summary of each device of a file. */
export const devicesOf = (file: string) =>
  cli("summary", file).files.flatMap(({ devices }) => devices);

/** The summary of a device, by default of the first. */
export function deviceOf(file: string, device?: number) {
  const devices = devicesOf(file);
  const found = device === undefined ? devices[0] : devices.find((each) => each.device === device);
  if (!found) throw new Error(`${file} has no such device`);
  return found;
}

/** All blocks of a device, by default of the first. */
export const blocksOf = (file: string, ...more: string[]) => cli("blocks", file, ...more).blocks;

/** The state after an event. */
export const stateOf = (file: string, event: number) => cli("state", file, "--at", String(event));

/** All findings of a file. */
export const findingsOf = (file: string) => cli("diagnose", file, "--all").findings;

/** The reference of a block: `0:0x1000@1`. */
export const referenceOf = ({ address, alloc_event, preexisting }: BlockRow, device = 0) =>
  `${device}:${address}@${preexisting ? "pre" : alloc_event}`;

/** An address as a table of the page writes it: `0x76002a000000 (4th)`. */
export function written({ address, reuse }: Pick<BlockRow, "address" | "reuse">): string {
  const nth = reuse + 1;
  const ending = { 1: "st", 2: "nd", 3: "rd" }[nth % 10] ?? "th";
  const teen = nth % 100 > 10 && nth % 100 < 14;
  const count = nth.toLocaleString("en-US");
  return reuse === 0 ? address : `${address} (${count}${teen ? "th" : ending})`;
}
