// The state of one viewer by owner. A component's properties name the owners that it uses.

import type { Signal } from "@preact/signals";
import type { Address } from "./address.js";
import type { Appearance } from "./appearance.js";
import type { CodeStore } from "./code-store.js";
import type { Filters } from "./filters.js";
import type { Navigation } from "./navigation.js";
import type { Plots } from "./plots.js";
import type { Host } from "./run.js";
import type { RunLoader } from "./run-loader.js";
import type { RunStore } from "./run-store.js";
import type { Selection } from "./selection.js";
import type { Status } from "./status.js";
import type { ViewSelection } from "./view-selection.js";
import type { Workspace } from "./views/workspace.js";

export interface Stores {
  /** The open run: files, rows, workers. */
  readonly runs: RunStore;
  /** Source files that the user opened. */
  readonly code: CodeStore;
  /** Opens and adds files. */
  readonly loader: RunLoader;
  /** The row in focus, the selected block or card. */
  readonly selection: Selection;
  /** Cursor, range, search and display options. */
  readonly viewSelection: ViewSelection;
  /** The terms that choose a group of blocks in all views. */
  readonly filters: Filters;
  /** Open views, panels and dialogs. */
  readonly navigation: Navigation;
  readonly plots: Plots;
  readonly appearance: Appearance;
  /** Notices and announcements. */
  readonly status: Status;
  /** The view state as a value: links, `getState`, undo. */
  readonly address: Address;
  readonly host: Host;
  /** All views but the timeline; null until their code is loaded. */
  readonly workspace: Signal<Workspace | null>;
}

/** Properties of a component that uses these owners. */
export type Uses<Owners extends keyof Stores> = Pick<Stores, Owners>;
