// Messages in place of the timeline: a load in progress, a failure, or the lack of a history.

import type { RankFile } from "../client/rank-file.js";
import type { Uses } from "../stores.js";
import { EMPTY, Message, NoPicture, PlotMessage, Unread } from "./messages.js";

export type PlotStateProperties = Uses<"runs" | "selection" | "plots" | "status" | "workspace">;

export function PlotState({ runs, selection, plots, status, workspace }: PlotStateProperties) {
  const focus = selection.focus.value;
  const plot = plots.timeline.value;
  if (plots.failure.value !== null || (plot?.lost.value && selection.visibleTrace.value))
    return <NoPicture plots={plots} plot={plot} what="The timeline" />;
  if (!runs.modules.compiled.value) return <Compiling />;
  if (focus === null) return <Waiting runs={runs} />;
  const load = focus.file.load.value;
  if (load.state === "error") {
    const { file } = focus;
    const views = workspace.value;
    const choice = file.tooLarge.value?.choice;
    if (choice && views) {
      return <views.ui.PartForm file={file} failure={load.failure} choice={choice} />;
    }
    return (
      <PlotMessage>
        <Unread runs={runs} status={status} file={file} load={load} />
      </PlotMessage>
    );
  }
  if (load.state === "unread") return <Unopened file={focus.file} />;
  if (load.state !== "ready") return <Reading file={focus.file} />;
  const trace = selection.trace.value;
  if (!trace?.device)
    return (
      <PlotMessage>
        <p>{EMPTY}</p>
      </PlotMessage>
    );
  if (trace.device.note !== null)
    return <Message title="No timeline" text={trace.device.note} hint={null} />;
  return focus.file.client.value === null || focus.file.progress.value ? (
    <Reading file={focus.file} again />
  ) : null;
}

/** Files are open, but the worker's module is not compiled yet. */
function Compiling() {
  return (
    <PlotMessage>
      <p>Waiting for the viewer to load</p>
      <p class="dim">Your files are queued. They are read as soon as the viewer is ready.</p>
    </PlotMessage>
  );
}

/** A file that is known from an index and is not read. */
function Unopened({ file }: { file: RankFile }) {
  return (
    <Message
      title={`${file.path} is not open`}
      text="Its card is in the index."
      hint="Open this file, or drop its folder, to read it."
    />
  );
}

/** No rank is ready yet, or none could be read. */
function Waiting({ runs }: Uses<"runs">) {
  if (runs.run.value?.isIndexed)
    return (
      <Message
        title="No rank is chosen"
        text="Choose a rank to read its file."
        hint="The overview and the matrix show all ranks without it."
      />
    );
  const files = runs.run.value?.files ?? [];
  const failed = runs.tally.value.failed === files.length;
  if (files.length === 0)
    return (
      <Message
        title="No snapshot was found"
        text={runs.run.value?.skippedText?.text ?? ""}
        hint={null}
      />
    );
  if (failed)
    return (
      <Message title="No file could be read" text="See each row for the reason." hint={null} />
    );
  return (
    <PlotMessage>
      <p>Reading</p>
      <p class="dim">The first rank that is ready will be shown here.</p>
    </PlotMessage>
  );
}

function Reading({ file, again = false }: { file: RankFile; again?: boolean }) {
  const progress = file.progress.value;
  return (
    <PlotMessage>
      <p>{again ? `Reading ${file.path} again` : `Reading ${file.path}`}</p>
      <p class="dim num">{progress?.text ?? file.planned.size}</p>
      <span class="bar" style={{ "--fraction": progress?.fraction ?? 0 }} />
      {progress?.provisional && (
        <figure class="sketch" data-testid="provisional">
          <svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">
            <path d={progress.provisional.path} />
          </svg>
          <figcaption class="dim">
            {progress.provisional.text}, provisional: initial memory is known at the end of the file
          </figcaption>
        </figure>
      )}
    </PlotMessage>
  );
}
