// What can be changed, which changes are chosen, and what the run needs with all of them. The
// timeline shows them as well.

import { computed, type Signal } from "@preact/signals";
import { type Resource, resource, stopAll } from "../../client/resource.js";
import type { LeverItem } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";
import { visibleStretch } from "../timeline/lanes.js";

/** A column of a lane has 6 pixels, a column of the curve 1.5. */
const FINER = 4;

type LeversOwners = ViewUses<"selection" | "viewSelection" | "navigation" | "plots" | "queries">;

export class Levers {
  /** Whether all levers are listed, over the page. */
  readonly isUnfolded: Signal<boolean>;
  /** The levers for the chosen GPU, else for what the file shows. */
  readonly table;
  /** What the run needs with settings of the allocator, while all levers are listed. */
  readonly settings;
  /** The levers that are chosen, in their order. */
  readonly chosen;
  /** The text of the question; empty for the recording as it is. */
  readonly question;
  /** The run with the chosen levers together; only of several, and of a link. */
  readonly sum;
  /** The simulated reserved bytes near the visible range. */
  readonly curve;
  /** The most bytes of the line over the timeline; 0 without one. */
  readonly top;
  readonly #text: Signal<string>;
  readonly #isTouched: Signal<boolean>;
  readonly #stop: (() => void)[];

  constructor({ selection, viewSelection, navigation, plots, queries }: LeversOwners) {
    this.isUnfolded = viewSelection.leversUnfolded;
    this.#text = viewSelection.scenario;
    this.#isTouched = viewSelection.scenarioTouched;
    const { capacity } = viewSelection;
    this.table = resource(selection, "levers", () => {
      // Replays wait for the first words.
      if (queries.summary.value === null) return null;
      return { levers: { bytes: capacity.value, all: this.isUnfolded.value } };
    });
    this.settings = resource(selection, "leverSettings", () =>
      this.isUnfolded.value && this.table.value.value !== null ? { leverSettings: {} } : null,
    );
    this.chosen = computed((): readonly LeverItem[] => {
      const table = this.table.value.value;
      const rows = table?.rows ?? [];
      if (this.#isTouched.value || this.#text.value !== "") {
        const asked = new Set(partsOf(this.#text.value));
        return rows.filter(
          ({ question }) => question !== "" && partsOf(question).every((part) => asked.has(part)),
        );
      }
      return rows.filter(({ id }) => id === table?.chosen);
    });
    this.question = computed(() => {
      const memory = capacity.value;
      const text = this.#text.value || this.chosen.value.map(({ question }) => question).join(",");
      return text === "" || memory === null ? text : `${text},pytorch_memory:${memory}`;
    });
    const isChanged = computed(() => this.#text.value !== "");
    const isDrawn = computed(() => navigation.view.value === "timeline" && isChanged.value);
    this.sum = resource(selection, "scenario", () => {
      const isSummed = navigation.view.value === "summary" && this.isSet.value;
      return isSummed || isDrawn.value ? { scenario: { text: this.question.value } } : null;
    });
    const around = visibleStretch(plots.timeline);
    this.curve = resource(selection, "simulatedCurve", () => {
      const stretch = around.value;
      const axis = selection.visibleTrace.value?.axis.kind;
      // Without a change the line would cover the recorded one.
      if (!isDrawn.value || !stretch || !axis) return null;
      const columns = stretch.columns * FINER;
      return { simulatedCurve: { text: this.question.value, axis, ...stretch, columns } };
    });
    this.top = computed(() => (isChanged.value ? (this.sum.value.value?.top ?? 0) : 0));
    const all: Resource<unknown>[] = [this.table, this.settings, this.sum, this.curve];
    this.#stop = all.map(({ stop }) => stop);
  }

  /** How many changes are chosen: levers, and what no row has. */
  readonly count = computed(() => {
    const rows = this.chosen.value.flatMap(({ question }) => partsOf(question));
    const known = new Set(rows);
    const others = partsOf(this.#text.value).filter((part) => !known.has(part));
    return this.chosen.value.length + others.length;
  });

  /** Whether a sum says more than a row. */
  readonly isSet = computed(() => this.count.value > Math.min(1, this.chosen.value.length));

  isChosen(item: LeverItem): boolean {
    return this.chosen.value.some(({ id }) => id === item.id);
  }

  /** Chooses a lever, or no longer. Forms of one change exclude each other. */
  toggle(item: LeverItem): void {
    const before = this.chosen.peek();
    const isOn = before.some(({ id }) => id === item.id);
    const excluded = before.filter(({ id, kind }) => (isOn ? id === item.id : kind === item.kind));
    const gone = new Set(excluded.flatMap(({ question }) => partsOf(question)));
    const text = this.#text.peek() || before.map(({ question }) => question).join(",");
    const kept = partsOf(text).filter((part) => !gone.has(part));
    const parts = isOn ? kept : [...kept, ...partsOf(item.question)];
    this.#isTouched.value = true;
    this.#text.value = [...new Set(parts)].join(",");
  }

  destroy(): void {
    stopAll(this.#stop);
  }
}

/** The items of a question. A list in brackets has commas of its own. */
const partsOf = (text: string): string[] =>
  text
    .split(/,(?![^[]*\])/)
    .map((part) => part.trim())
    .filter(Boolean);
