// Queries about the focused trace whose answers several views show.

import { computed } from "@preact/signals";
import { type Resource, resource, stopAll } from "../client/resource.js";
import type { FindingMember, FindingRow } from "../generated/protocol.js";
import type { Ranks } from "../places/ranks/ranks.js";
import { visibleRange, visibleStretch } from "../places/timeline/lanes.js";
import type { Uses } from "../stores.js";

/** Columns of a line of bytes per column of a lane. */
export const FINER = 3;

/** A finding of one rank, or equal findings of several. */
export interface FindingCard {
  /** `on 7 of 8 ranks`; empty for a finding without equals. */
  text: string;
  /** Whether it is of low severity. */
  small: boolean;
  /** The findings, the worst first. */
  members: FindingRow[];
}

export class Queries {
  /** The state at the time cursor; null without a cursor. */
  readonly stateAt;
  /** The state at the peak, while the details are open. */
  readonly peak;
  /** Places of the markers, and of A and B. */
  readonly markers;
  /** What changed from A to B, while a view shows it. */
  readonly changes;
  /** The summary of the focused trace: at once without the model of the allocator, then with. */
  readonly summary;
  /** Findings of the focused trace. */
  readonly findings;
  /** The colors of the plots with their bytes at the cursor, or at the peak. */
  readonly legend;
  /** Reserved bytes near the visible range; null unless they have a strip of their own. */
  readonly reserved;
  /** Bytes of the traced step that no operation uses again; null without a traced step. */
  readonly dead;
  /** What PyTorch could have on the device, and the allocations that failed. */
  readonly limit;
  /** The curve and the marks of the minimap. */
  readonly minimap;
  /** Annotated ranges near the visible range. */
  readonly annotations;
  /** Steps and their phases near the visible range. */
  readonly phases;
  /** The allocator's settings. */
  readonly settings;
  /** The number and bytes of the blocks that filters and search choose. */
  readonly found;
  /** Findings of all loaded ranks, the worst first. */
  readonly cards;
  readonly #stop: (() => void)[];

  constructor(
    {
      selection,
      viewSelection,
      filters,
      navigation,
      plots,
    }: Uses<"selection" | "viewSelection" | "filters" | "navigation" | "plots">,
    ranks: Ranks,
  ) {
    // Annotations and phases are laid out for a stretch that is wider than the view.
    const around = visibleStretch(plots.timeline);
    const axis = () => selection.visibleTrace.value?.axis.kind ?? "event";
    this.stateAt = resource(selection, "stateAt", () => {
      const event = viewSelection.cursor.value;
      return event === null ? null : { stateAt: { event } };
    });
    this.peak = resource(selection, "stateAt", () =>
      viewSelection.cursor.value === null ? { peak: {} } : null,
    );
    this.markers = resource(selection, "markers", () => {
      const { a, b } = viewSelection.ends.value;
      const ends = [a, b].filter((event) => event !== null);
      const events = [...new Set([...viewSelection.markers.value, ...ends])];
      return events.length === 0 ? null : { markers: { events } };
    });
    this.changes = resource(selection, "changes", () => {
      const { a: from, b: to } = viewSelection.ends.value;
      const isShown = navigation.shownSheet.value === "ab" || navigation.view.value === "map";
      if (from === null || to === null || !isShown) return null;
      return { changes: { from, to } };
    });
    const first = resource(selection, "summary", () => ({ summary: {} }));
    // Replays wait for the first answer: they take longer.
    const simulated = resource(selection, "summary", () =>
      first.value.value === null ? null : { simulatedSummary: {} },
    );
    this.summary = computed(() => simulated.value.value ?? first.value.value);
    this.findings = computed(() => {
      const told = this.summary.value?.view.findings ?? [];
      const trace = selection.trace.value;
      const own = trace?.file.ownCards.value?.[trace.partIndex]?.findings ?? [];
      const isOther = (row: FindingRow) =>
        row.record.device === trace?.device?.device && !told.some((each) => isSame(each, row));
      return [...told, ...own.filter(isOther)];
    });
    const inView = visibleRange(plots);
    this.legend = resource(selection, "legend", () => {
      const range = inView.value;
      const { color, cursor } = viewSelection;
      return (
        range && { legend: { color: color.value, event: cursor.value, axis: axis(), ...range } }
      );
    });
    this.reserved = resource(selection, "reservedLine", () => {
      const stretch = around.value;
      const isApart = selection.visibleTrace.value?.device.reservedApart ?? false;
      if (!stretch || !isApart || !viewSelection.bands.value.reserved) return null;
      const { x0, x1, columns } = stretch;
      return { reservedLine: { axis: axis(), x0, x1, columns: columns * FINER } };
    });
    this.dead = resource(selection, "deadLine", () => {
      const stretch = around.value;
      if (!stretch) return null;
      const { x0, x1, columns } = stretch;
      return { deadLine: { axis: axis(), x0, x1, columns: columns * FINER } };
    });
    this.limit = resource(selection, "limit", () => ({ limit: { axis: axis() } }));
    this.minimap = resource(selection, "minimap", () => ({ minimap: { axis: axis() } }));
    this.settings = resource(selection, "settings", () => ({ settings: {} }));
    this.annotations = resource(selection, "tracks", () => {
      const stretch = around.value;
      return stretch && { tracks: { axis: axis(), ...stretch } };
    });
    this.phases = resource(selection, "phases", () => {
      const stretch = around.value;
      return stretch && { phases: { axis: axis(), ...stretch } };
    });
    this.found = resource(selection, "search", () => {
      const text = filters.text.value;
      return text === "" ? null : { search: { text } };
    });
    this.cards = computed((): readonly FindingCard[] | null => {
      const overview = ranks.overview.value;
      const own = this.findings.value;
      const rowOf = ({ row, index }: FindingMember) => {
        const outliers = overview?.outliers ?? [];
        const found =
          row === null
            ? (outliers[index] ?? overview?.indexed[index - outliers.length])
            : ranks.findingOf(row, index);
        return found && (own.find((of) => isSame(of, found)) ?? found);
      };
      const cards = overview?.groups.map(({ text, small, members }) => ({
        text,
        small,
        members: members.map(rowOf).filter((row) => row !== undefined),
      }));
      return cards ?? null;
    });
    const all: Resource<unknown>[] = [
      this.stateAt,
      this.peak,
      this.markers,
      this.changes,
      first,
      simulated,
      this.legend,
      this.reserved,
      this.dead,
      this.limit,
      this.minimap,
      this.settings,
      this.annotations,
      this.phases,
      this.found,
    ];
    this.#stop = all.map(({ stop }) => stop);
  }

  destroy(): void {
    stopAll(this.#stop);
  }
}

function isSame({ record: a }: FindingRow, { record: b }: FindingRow): boolean {
  return a.id === b.id && a.path === b.path && a.device === b.device;
}
