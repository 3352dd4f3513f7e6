// The whole viewer: a landing page until something is opened, then one workspace.

import type { Signal } from "@preact/signals";
import type { RunWatch } from "../client/run-index.js";
import type { Session } from "../session.js";
import { Details } from "./details.js";
import { Header } from "./header.js";
import { Landing } from "./landing.js";
import { Notice, OfferNotice } from "./notice.js";
import { Panes } from "./panes.js";
import { Rail } from "./rail.js";

export interface Opening {
  /** Address of the sample run's index; null where there is none. */
  sample: string | null;
  /** Address of a page that says how to record; null where there is none. */
  guide: string | null;
  /** The page around it has the name, the theme and the ways to open something. */
  embedded: Signal<boolean>;
  /** Nobody opens anything but the script. */
  readonly: Signal<boolean>;
  files(files: Iterable<File>): void;
  /** Beside what is open. */
  add(files: Iterable<File>): void;
  openSample(): void;
  /** Snapshots that were written since. */
  offer: RunWatch;
  openOffer(): void;
}

export function App({ session, opening }: { session: Session; opening: Opening }) {
  const run = session.run.value;
  // A single file needs no column of its own: its row stands in the header.
  const column = session.rows.value.length > 1;
  const rail = run && <Rail session={session} run={run} />;
  const views = session.workspace.value;
  return (
    <div
      class="app"
      data-theme={session.dark.value ? "dark" : "light"}
      data-stage={run ? "run" : "landing"}
      data-rail={column ? "column" : "header"}
      data-details={session.detailsOpen.value}
      data-dropping={session.dropping.value ?? undefined}
    >
      <Header session={session} opening={opening}>
        {!column && rail}
      </Header>
      {run ? (
        <>
          {column && rail}
          <main class="main" part="main">
            <Busy session={session} />
            <Notice session={session} />
            <OfferNotice offer={opening.offer} open={opening.openOffer} />
            <Panes session={session} />
          </main>
          <Details session={session} />
        </>
      ) : (
        <main class="main" part="main">
          <Notice session={session} />
          <OfferNotice offer={opening.offer} open={opening.openOffer} />
          <Landing session={session} opening={opening} />
        </main>
      )}
      {views && (
        <>
          <views.ui.Sheet session={session} />
          <views.ui.Palette session={session} workspace={views} />
        </>
      )}
      <div class="veil" aria-hidden="true">
        <p>
          Drop to add
          <span>beside what is open</span>
        </p>
        <p data-instead>
          Open instead
          <span>what is open is closed</span>
        </p>
      </div>
      <div class="visually-hidden" role="status" aria-live="polite">
        {session.spoken}
      </div>
    </div>
  );
}

/**
 * A line that moves while the worker is at something that takes time: what is on screen may not be
 * all.
 */
function Busy({ session }: { session: Session }) {
  const isBusy = session.asked?.client.busy.value ?? false;
  return isBusy && <div class="busy" role="progressbar" aria-label="Computing" />;
}
