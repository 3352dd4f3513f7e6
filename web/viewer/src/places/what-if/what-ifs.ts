// What the "What if" view asks, and the answers, which the timeline shows as well.

import { batch, computed, effect, type Signal, signal, untracked } from "@preact/signals";
import { type Resource, resource, stopAll } from "../../client/resource.js";
import type { Edit } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";
import { visibleStretch } from "../timeline/lanes.js";
import { capacityOf } from "../timeline/limits.js";

/** A column of a lane has 6 pixels, a column of the curve 1.5. */
const FINER = 4;

export class WhatIfs {
  /** The text of the question; empty for the recording as it is. The worker reads it. */
  readonly text: Signal<string>;
  /** Whether something differs from the recording. */
  readonly isChanged;
  /** Whether there are predictions, and the question by control. */
  readonly card;
  /** The usual scenarios, which take dozens of replays. */
  readonly usual;
  /** The scenario that is asked. */
  readonly scenario;
  /** The simulated reserved bytes near the visible range. */
  readonly curve;
  /** What PyTorch can have on the chosen GPU, or had as the file shows; null while not known. */
  readonly available;
  /** The cheapest sets of changes that fit there. */
  readonly plan;
  /** The most bytes of the line over the timeline; 0 without one. */
  readonly top;
  /** Changes of controls that the worker has not put into the text yet. */
  readonly #edits = signal<readonly Edit[]>([]);
  readonly #capacity: Signal<number | null>;
  readonly #stop: (() => void)[];

  constructor({
    selection,
    viewSelection,
    navigation,
    plots,
    queries,
  }: ViewUses<"selection" | "viewSelection" | "navigation" | "plots" | "queries">) {
    this.text = viewSelection.scenario;
    this.#capacity = viewSelection.capacity;
    this.isChanged = computed(() => this.text.value !== "");
    // The timeline keeps the line of a change.
    const isOpen = computed(
      () =>
        navigation.view.value === "what-if" ||
        (navigation.view.value === "timeline" && this.isChanged.value),
    );
    const around = visibleStretch(plots.timeline);
    this.card = resource(selection, "whatIf", () =>
      isOpen.value ? { whatIf: { text: this.text.value, edits: [...this.#edits.value] } } : null,
    );
    // The text stays equal while only settings change, which the usual scenarios do not follow.
    const shared = computed(() => this.card.value.value?.question.shared);
    this.usual = resource(selection, "usualScenarios", () =>
      isOpen.value && shared.value !== undefined
        ? { usualScenarios: { text: shared.value } }
        : null,
    );
    this.scenario = resource(selection, "scenario", () =>
      isOpen.value ? { scenario: { text: this.text.value } } : null,
    );
    this.curve = resource(selection, "simulatedCurve", () => {
      const stretch = around.value;
      const axis = selection.visibleTrace.value?.axis.kind;
      // Without a change the line would cover the recorded one.
      if (!isOpen.value || !this.isChanged.value || !stretch || !axis) return null;
      const columns = stretch.columns * FINER;
      return { simulatedCurve: { text: this.text.value, axis, ...stretch, columns } };
    });
    this.top = computed(() => (this.isChanged.value ? (this.scenario.value.value?.top ?? 0) : 0));
    const { capacity } = viewSelection;
    this.available = computed(() => capacityOf(capacity.value, queries.limit.value.value));
    this.plan = resource(selection, "plan", () =>
      navigation.view.value === "what-if" && this.available.value !== null
        ? { plan: { bytes: this.available.value } }
        : null,
    );
    // One field for the GPU: the question follows it.
    let asked = capacity.peek();
    const followed = effect(() => {
      if (capacity.value === asked) return;
      asked = capacity.value;
      untracked(() => this.ask("pytorch_memory", asked === null ? null : String(asked)));
    });
    const all: Resource<unknown>[] = [this.card, this.usual, this.scenario, this.curve, this.plan];
    // The answer to the newest edits has all of them in its text.
    const edited = effect(() => {
      const question = this.card.value.value?.question;
      if (question === undefined || this.card.waiting.peek()) return;
      batch(() => {
        this.text.value = question.text;
        if (this.#edits.peek().length > 0) this.#edits.value = [];
      });
    });
    this.#stop = [edited, followed, ...all.map(({ stop }) => stop)];
  }

  /** Sets an item of the question; null takes what was recorded. */
  ask(item: string, value: string | null): void {
    const others = this.#edits.peek().filter((edit) => edit.item !== item);
    this.#edits.value = [...others, { item, value }];
  }

  /** Asks for these settings and changes of the program, on the chosen GPU. */
  apply(conf: string | null, recipe: string): void {
    batch(() => {
      this.#edits.value = [];
      this.text.value = this.#textOf(conf, recipe);
    });
  }

  /** Whether these settings and changes are what is asked. */
  isAsked(conf: string | null, recipe: string): boolean {
    return this.text.value === this.#textOf(conf, recipe);
  }

  #textOf(conf: string | null, recipe: string): string {
    const memory = this.#capacity.value;
    const items = [conf, memory === null ? "" : `pytorch_memory:${memory}`, recipe];
    return items.filter(Boolean).join(",");
  }

  /** Asks about the recording as it is. */
  reset(): void {
    batch(() => {
      this.text.value = "";
      this.#edits.value = [];
    });
  }

  destroy(): void {
    stopAll(this.#stop);
  }
}
