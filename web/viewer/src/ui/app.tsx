// The whole viewer: a landing page until files are opened, then the workspace.

import type { Signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { RunWatch } from "../client/run-index.js";
import type { Stores, Uses } from "../stores.js";
import { Details, isSelected } from "./details.js";
import { giveBack } from "./give-back.js";
import { Header } from "./header.js";
import { Landing } from "./landing.js";
import { Notice, OfferNotice } from "./notice.js";
import { Panes } from "./panes.js";
import { PlaceBar } from "./place-bar.js";
import { Rail } from "./rail.js";

/** The ways to open files, and what the element's attributes say of them. */
export interface Opening {
  /** Address of the index of a first example; null without one. */
  example: string | null;
  /** Address of the sample run's index; null without one. */
  sample: string | null;
  /** Address of a page on recording; null without one. */
  guide: string | null;
  /** Address of a page with recorded cases; null without one. */
  gallery: string | null;
  /** Address of the documents; null without them. */
  docs: string | null;
  /** Address of a page that may fetch snapshots from other addresses; null without one. */
  links: string | null;
  /** The embedding page has the name, the theme and the ways to open files. */
  embedded: Signal<boolean>;
  /** Only scripts open files. */
  readonly: Signal<boolean>;
  files(files: Iterable<File>): void;
  /** Adds files to the open run. */
  add(files: Iterable<File>): void;
  /** Opens the run of an index. */
  openIndex(address: string): void;
  /** Snapshots written since the run was opened. */
  offer: RunWatch;
  openOffer(): void;
}

export function App({ stores, opening }: { stores: Stores; opening: Opening }) {
  const { runs, selection, navigation, appearance, status, workspace } = stores;
  const run = runs.run.value;
  // A single file needs no column: its row stands in the header.
  const column = runs.rows.value.length > 1;
  const rail = run && <Rail {...stores} run={run} />;
  const views = workspace.value;
  const main = useRef<HTMLElement>(null);
  const keys = useMemo(() => giveBack(() => main.current), []);
  return (
    <div
      class="app"
      {...keys}
      data-theme={appearance.dark.value ? "dark" : "light"}
      data-stage={run ? "run" : "landing"}
      data-rail={column ? "column" : "header"}
      data-details={isSelected(stores)}
      data-settled={navigation.settled.value}
      data-dropping={runs.dropping.value ?? undefined}
    >
      {run && (
        <button
          type="button"
          class="skip visually-hidden"
          onClick={() => skipToPlot(stores, main.current)}
        >
          Skip to the plot
        </button>
      )}
      <Header {...stores} opening={opening}>
        {!column && rail}
      </Header>
      {run ? (
        <>
          <PlaceBar {...stores} />
          {column && rail}
          <main class="main" part="main" tabIndex={-1} ref={main}>
            <Busy selection={selection} />
            <Notice status={status} />
            <OfferNotice offer={opening.offer} open={opening.openOffer} />
            <Panes {...stores} />
          </main>
          {isSelected(stores) && <Details {...stores} />}
        </>
      ) : (
        <main class="main" part="main">
          <OfferNotice offer={opening.offer} open={opening.openOffer} />
          <Landing {...stores} opening={opening} />
        </main>
      )}
      {views && (
        <>
          <views.ui.Help />
          <views.ui.Palette />
          <views.ui.ReportDialog />
        </>
      )}
      <div class="veil" aria-hidden="true">
        <p>
          Drop to add
          <span>to the open run</span>
        </p>
        <p data-instead>
          Drop to open
          <span>and close the open run</span>
        </p>
      </div>
      <div class="visually-hidden" role="status" aria-live="polite">
        {status.spoken}
      </div>
    </div>
  );
}

/** A moving line while the worker is busy: the view may be incomplete. */
function Busy({ selection }: Uses<"selection">) {
  const isBusy = selection.target?.client.busy.value ?? false;
  return isBusy && <div class="busy" role="progressbar" aria-label="Computing" />;
}

/** The first Tab stop leads to the plot, else to what the place shows. */
function skipToPlot({ plots, navigation }: Stores, main: HTMLElement | null): void {
  const { view } = navigation;
  if (view.peek() === "timeline") plots.timeline.peek()?.canvas.focus();
  else main?.focus();
}
