// Ranks whose curves are pinned below the timeline. The rank in the center says where the columns
// of its axis are in time; each pinned rank's worker draws its curve at these moments.

import { computed, effect, type Signal, signal, untracked } from "@preact/signals";
import type { RankClient } from "../../client/rank-client.js";
import type { RankFile } from "../../client/rank-file.js";
import { resource, stopAll } from "../../client/resource.js";
import type { DeviceRef, Moments, PinnedLine } from "../../generated/protocol.js";
import { type Row, traceOf } from "../../run.js";
import type { Uses } from "../../stores.js";
import type { Pin } from "../../view-selection.js";
import { type Stretch, visibleStretch } from "./lanes.js";

/** Columns of a curve per column of a lane. */
const FINER = 3;

type PinsOwners = Uses<"runs" | "selection" | "viewSelection" | "navigation" | "plots" | "status">;

const isPinOf =
  ({ file, part }: Pick<Row, "file" | "part">) =>
  ({ path, part: of }: Pin) =>
    path === file.path && part === of;

const keyOf = ({ file, part }: Pick<Row, "file" | "part">) => `${file.planned.file}/${part}`;

export class Pins {
  /** The pinned rows that are open, in the order of pinning. */
  readonly rows = computed(() => {
    const { runs, viewSelection } = this.#owners;
    const pins = viewSelection.pins.value;
    if (pins.length === 0) return [];
    const rows = runs.rows.value;
    return pins.flatMap((pin) => rows.find((row) => isPinOf(row)(pin)) ?? []);
  });
  /** The stretch of the axis that the curves are for; null until they have come. */
  readonly stretch: Signal<Stretch | null> = signal(null);
  /** The curve of the rank in the center at these moments. */
  readonly main: Signal<PinnedLine | null> = signal(null);
  readonly #lines: Signal<ReadonlyMap<string, PinnedLine>> = signal(new Map());
  readonly #owners: PinsOwners;
  readonly #stop: readonly (() => void)[];
  /** Files whose workers are kept while they are pinned. */
  readonly #kept = new Set<RankFile>();
  #asked = 0;

  constructor(owners: PinsOwners) {
    this.#owners = owners;
    const { selection, viewSelection, navigation, plots } = owners;
    const around = visibleStretch(plots.timeline);
    const isShown = () => this.rows.value.length > 0 && navigation.view.value === "timeline";
    const moments = resource(selection, "moments", () => {
      const axis = selection.visibleTrace.value?.axis.kind;
      const stretch = isShown() ? around.value : null;
      if (!axis || !stretch) return null;
      const { x0, x1, columns } = stretch;
      const event = viewSelection.cursor.value;
      return { moments: { axis, x0, x1, columns: columns * FINER, event } };
    });
    this.#stop = [
      () => moments.stop(),
      effect(() => this.#keep(new Set(isShown() ? this.rows.value.map(({ file }) => file) : []))),
      effect(() => this.#ask(moments.value.value)),
    ];
  }

  destroy(): void {
    stopAll(this.#stop);
    this.#keep(new Set());
  }

  /** The curve of a row; null until it has come. */
  lineOf(row: Row): PinnedLine | null {
    return this.#lines.value.get(keyOf(row)) ?? null;
  }

  isPinned(row: Row): boolean {
    return this.#owners.viewSelection.pins.value.some(isPinOf(row));
  }

  /** Pins a row below the timeline, or removes it. */
  toggle(row: Row): void {
    const { viewSelection, navigation, status } = this.#owners;
    const { pins } = viewSelection;
    const rest = pins.peek().filter((pin) => !isPinOf(row)(pin));
    const isNew = rest.length === pins.peek().length;
    pins.value = isNew ? [...rest, { path: row.file.path, part: row.part }] : rest;
    if (isNew) {
      navigation.show("timeline");
      // The first lanes take the room of the sheet.
      if (rest.length === 0) navigation.openSheet(null);
    }
    status.announce(`${row.label} ${isNew ? "pinned below the timeline" : "unpinned"}`);
  }

  toggleFocused(): void {
    const { runs, selection } = this.#owners;
    const row = runs.rows.peek().find((one) => selection.isFocused(one));
    if (row && runs.rows.peek().length > 1) this.toggle(row);
  }

  clear(): void {
    this.#owners.viewSelection.pins.value = [];
  }

  /** Puts a pinned row in the center, and pins the one that was there in its place. */
  swap(row: Row): void {
    const { selection, viewSelection } = this.#owners;
    const before = selection.focus.peek();
    if (before && !selection.isFocused(row)) {
      const other = { path: before.file.path, part: before.part };
      const pins = viewSelection.pins.peek().filter((pin) => !isPinOf(before)(pin));
      viewSelection.pins.value = pins.map((pin) => (isPinOf(row)(pin) ? other : pin));
    }
    selection.look(row);
  }

  #keep(files: ReadonlySet<RankFile>): void {
    untracked(() => {
      const { pool } = this.#owners.runs;
      for (const file of this.#kept) {
        if (files.has(file)) continue;
        this.#kept.delete(file);
        pool.release(file);
      }
      for (const file of files) {
        if (this.#kept.has(file)) continue;
        this.#kept.add(file);
        void pool.acquire(file);
      }
    });
  }

  /** Asks all ranks for their curves, on one scale. */
  #ask(moments: Moments | null): void {
    const { selection } = this.#owners;
    const targets = this.rows.value.flatMap((row) => {
      const device = traceOf({ ...row, device: null })?.device;
      const client = row.file.client.value;
      if (!device || !client) return [];
      const target = { part: row.part, device: device.device };
      return [{ key: keyOf(row), client, target, peak: Number(device.peak.raw) }];
    });
    const main = selection.target;
    const own = Number(selection.trace.value?.device?.peak.raw ?? 0);
    this.#asked += 1;
    const latest = this.#asked;
    untracked(() => {
      if (moments === null || main === null) {
        this.stretch.value = null;
        return;
      }
      const top = Math.max(own, ...targets.map(({ peak }) => peak));
      const line = (client: RankClient, target: DeviceRef) =>
        client.view(target, "pinnedLine", { pinnedLine: { moments, top } });
      void Promise.all([
        line(main.client, main.target),
        ...targets.map(async ({ key, client, target }) => ({
          key,
          line: await line(client, target),
        })),
      ]).then(([center, ...each]) => {
        if (latest !== this.#asked) return;
        this.main.value = center;
        this.#lines.value = new Map(
          each.flatMap((one) => (one.line ? [[one.key, one.line] as const] : [])),
        );
        const { x0, x1, columns } = moments;
        this.stretch.value = columns > 0 ? { x0, x1, columns } : null;
      });
    });
  }
}
