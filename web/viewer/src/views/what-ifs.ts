// What the "What if" view asks, and the answers, which the timeline shows as well.

import { computed, type Signal } from "@preact/signals";
import { type Resource, resource, stopAll } from "../client/resource.js";
import type { ScenarioSpec } from "../generated/protocol.js";
import { AS_RECORDED, scenarioOf, scenarioText } from "../scenario-state.js";
import type { Uses } from "../stores.js";
import { visibleStretch } from "./lanes.js";

/** A column of a lane has 6 pixels, a column of the curve 1.5. */
const FINER = 4;

export class WhatIfs {
  /** What the view asks. */
  readonly spec: Signal<ScenarioSpec>;
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
  readonly #stop: (() => void)[];

  constructor({
    selection,
    viewSelection,
    navigation,
    plots,
  }: Uses<"selection" | "viewSelection" | "navigation" | "plots">) {
    this.spec = viewSelection.scenario;
    const isOpen = computed(
      () => navigation.view.value === "what-if" || navigation.drawer.value === "what-if",
    );
    this.isChanged = computed(() => scenarioText(this.spec.value) !== "");
    // The text stays equal while only settings change, which the usual scenarios do not follow.
    const shared = computed(() => {
      const { deviceMemory, tokens, parts } = this.spec.value;
      return scenarioText({ ...AS_RECORDED, deviceMemory, tokens, parts });
    });
    const around = visibleStretch(plots.timeline);
    this.card = resource(selection, "whatIf", () => (isOpen.value ? { whatIf: {} } : null));
    this.usual = resource(selection, "usualScenarios", () =>
      isOpen.value ? { usualScenarios: { spec: scenarioOf(shared.value) ?? AS_RECORDED } } : null,
    );
    this.scenario = resource(selection, "scenario", () =>
      isOpen.value ? { scenario: { spec: this.spec.value } } : null,
    );
    this.curve = resource(selection, "simulatedCurve", () => {
      const stretch = around.value;
      const axis = selection.visibleTrace.value?.axis.kind;
      // Without a change the line would cover the recorded one.
      if (!isOpen.value || !this.isChanged.value || !stretch || !axis) return null;
      const columns = stretch.columns * FINER;
      return { simulatedCurve: { spec: this.spec.value, axis, ...stretch, columns } };
    });
    this.top = computed(() => (this.isChanged.value ? (this.scenario.value.value?.top ?? 0) : 0));
    const all: Resource<unknown>[] = [this.card, this.usual, this.scenario, this.curve];
    this.#stop = all.map(({ stop }) => stop);
  }

  /** Changes a part of the question. */
  ask(change: Partial<ScenarioSpec>): void {
    this.spec.value = { ...this.spec.peek(), ...change };
  }

  /** Sets the factor of a category or a call site; null removes it from the question. */
  scale(what: string, factor: number | null): void {
    const { parts } = this.spec.peek();
    const isNew = parts.every((part) => part.what !== what);
    const changed = parts.map((part) => (part.what === what ? { what, factor } : part));
    const all = isNew ? [...parts, { what, factor }] : changed;
    this.ask({
      parts: all.flatMap((part) =>
        part.factor === null ? [] : [{ what: part.what, factor: part.factor }],
      ),
    });
  }

  destroy(): void {
    stopAll(this.#stop);
  }
}
