// What the "What if" view asks, and the answers, which the timeline shows as well.

import { computed, effect, type Signal, signal } from "@preact/signals";
import type { Range } from "../client/rank-client.js";
import { type Resource, resource, stopAll } from "../client/resource.js";
import type { ScenarioSpec } from "../generated/protocol.js";
import type { Uses } from "../stores.js";
import { stretchOf } from "./lanes.js";

/** The recording as it is. */
export const AS_RECORDED: ScenarioSpec = {
  expandableSegments: null,
  maxSplitSizeMb: null,
  roundupPower2Divisions: null,
  deviceMemory: "",
  tokens: 1,
};

/** Columns of the curve per column of a lane: steps of the curve are told apart at 1.5 pixels. */
const FINER = 4;

export class WhatIfs {
  /** What the view asks. */
  readonly spec: Signal<ScenarioSpec> = signal(AS_RECORDED);
  /** Whether something differs from the recording. */
  readonly isChanged;
  /** Whether there are predictions. */
  readonly card;
  /** The usual scenarios, which take dozens of replays. */
  readonly usual;
  /** The scenario that is asked. */
  readonly scenario;
  /** The simulated reserved bytes near the visible range. */
  readonly curve;
  /** The most bytes of the line over the timeline; 0 without one. */
  readonly top;
  readonly #stretch: Signal<(Range & { columns: number }) | null> = signal(null);
  readonly #stop: (() => void)[];

  constructor({ selection, navigation, plots }: Uses<"selection" | "navigation" | "plots">) {
    const isOpen = computed(
      () => navigation.view.value === "what-if" || navigation.drawer.value === "what-if",
    );
    this.isChanged = computed(() => {
      const spec = this.spec.value;
      return (Object.keys(AS_RECORDED) as (keyof ScenarioSpec)[]).some(
        (key) => spec[key] !== AS_RECORDED[key],
      );
    });
    this.card = resource(selection, "whatIf", () => (isOpen.value ? { whatIf: {} } : null));
    this.usual = resource(selection, "usualScenarios", () =>
      isOpen.value ? { usualScenarios: {} } : null,
    );
    this.scenario = resource(selection, "scenario", () =>
      isOpen.value ? { scenario: { spec: this.spec.value } } : null,
    );
    this.curve = resource(selection, "simulatedCurve", () => {
      const stretch = this.#stretch.value;
      const axis = selection.visibleTrace.value?.axis.kind;
      // Without a change the line would cover the recorded one.
      if (!isOpen.value || !this.isChanged.value || !stretch || !axis) return null;
      return { simulatedCurve: { spec: this.spec.value, axis, ...stretch } };
    });
    this.top = computed(() => (this.isChanged.value ? (this.scenario.value.value?.top ?? 0) : 0));
    const all: Resource<unknown>[] = [this.card, this.usual, this.scenario, this.curve];
    this.#stop = [
      effect(() => {
        const plot = plots.timeline.value;
        const range = plot?.range.value;
        const width = plot?.labels.value?.plot.width;
        const next = range && width ? stretchOf(range, width) : null;
        const before = this.#stretch.peek();
        if (next?.x0 === before?.x0 && next?.x1 === before?.x1) return;
        this.#stretch.value = next && { ...next, columns: next.columns * FINER };
      }),
      ...all.map(({ stop }) => stop),
    ];
  }

  /** Changes a part of the question. */
  ask(change: Partial<ScenarioSpec>): void {
    this.spec.value = { ...this.spec.peek(), ...change };
  }

  destroy(): void {
    stopAll(this.#stop);
  }
}
