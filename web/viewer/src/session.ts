// One viewer from entering a document to leaving it: makes the owners of its state and connects
// them.

import { effect, signal } from "@preact/signals";
import { Address } from "./address.js";
import { Appearance } from "./appearance.js";
import type { RankFile } from "./client/rank-file.js";
import { Modules } from "./client/wasm.js";
import { CodeStore } from "./code-store.js";
import { Filters } from "./filters.js";
import { Navigation } from "./navigation.js";
import { Plots } from "./plots.js";
import { failureOf, type Host, type SessionEvents } from "./run.js";
import { RunLoader } from "./run-loader.js";
import { RunStore } from "./run-store.js";
import { Selection } from "./selection.js";
import { Status } from "./status.js";
import type { Stores } from "./stores.js";
import { GIB, ViewSelection } from "./view-selection.js";
import type { Workspace } from "./views/workspace.js";

export class Session {
  readonly stores: Stores;
  readonly #events: SessionEvents;
  readonly #stop: (() => void)[];
  #views: Promise<void> | null = null;
  #ended = false;

  constructor(events: SessionEvents, host: Host) {
    this.#events = events;
    const modules = new Modules(host.places);
    const status = new Status((failure) => events.failed(null, failure));
    const navigation = new Navigation(status);
    const viewSelection = new ViewSelection();
    const filters = new Filters(viewSelection.search);
    const appearance = new Appearance(modules);
    const runs = new RunStore(modules, {
      progress: (file) => events.progress(file),
      ready: (file) => this.#ready(file),
      failed: (file, failure) => {
        if (file.skipped) loader.skip();
        else events.failed(file.path, failure);
      },
      crashing: (file) => address.savePending(file),
      refused: (failure) => status.report(failure),
    });
    const plots = new Plots(modules, viewSelection, {
      failed: (failure) => events.failed(null, failure),
      redrawing: () => address.savePending(),
    });
    const selection = new Selection(
      { runs, viewSelection, filters, plots, status },
      events.selected,
    );
    const workspace = signal<Workspace | null>(null);
    const shown = { selection, viewSelection, filters, navigation };
    const owners = { runs, ...shown, plots, appearance, status };
    const address = new Address(owners, () => void workspace.peek()?.stores.cards.showRange());
    const code = new CodeStore();
    const loader = new RunLoader({ ...owners, address, code });
    this.stores = { ...owners, address, code, loader, host, workspace };
    this.#stop = [
      effect(() => runs.pool.setBudget(viewSelection.memory.value * GIB)),
      effect(() => plots.timeline.value?.show(selection.visibleTrace.value)),
      effect(() => {
        const trace = selection.trace.value;
        if (trace) status.announce([trace.file.path, trace.device?.peakText].join(", "));
      }),
      effect(() => {
        const canShow = plots.timeline.value !== null || plots.failure.value !== null;
        if (canShow && selection.visibleTrace.value?.client) address.applyPending();
      }),
    ];
  }

  /** Imports the views, once: after the first picture, or while the landing page is idle. */
  loadViews(): Promise<void> {
    this.#views ??= this.#fetchViews().catch((error: unknown) => {
      if (this.#ended) return;
      const { message } = failureOf(error);
      // Nothing else decides where the run opens.
      this.stores.navigation.settled.value = true;
      this.stores.status.viewsFailed({
        id: null,
        message: `The other views could not be loaded: ${message}`,
        hint: "The timeline works without them. Reload the page to try again.",
      });
    });
    return this.#views;
  }

  async #fetchViews(): Promise<void> {
    const { Workspace } = await import("./views/workspace.js");
    if (!this.#ended) this.stores.workspace.value = new Workspace(this.stores);
  }

  /** Makes a spare canvas while no run is open. */
  prepareCanvas(): void {
    const { runs, plots } = this.stores;
    if (runs.run.peek() === null) plots.prepare();
  }

  destroy(): void {
    this.#ended = true;
    const { workspace, loader, plots, runs } = this.stores;
    workspace.peek()?.destroy();
    for (const stop of this.#stop) stop();
    loader.cancel();
    plots.destroy();
    runs.destroy();
  }

  #ready(file: RankFile): void {
    const { selection, address } = this.stores;
    // The first file that is ready is shown while the others load.
    if (selection.focus.peek() === null)
      selection.begin({ file, part: 0 }, address.pendingState.device ?? null);
    void this.loadViews();
    this.#events.loaded(file);
  }
}
