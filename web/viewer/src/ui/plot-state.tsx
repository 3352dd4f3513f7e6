// In place of a picture: what is being read, what went wrong, or why there is no history.

import type { RankFile } from "../client/rank-file.js";
import type { Session } from "../session.js";
import { NoPicture, Quiet, Unread, Words } from "./words.js";

export function PlotState({ session }: { session: Session }) {
  const focus = session.focus.value;
  const plot = session.plot.value;
  if (session.drawingFailure.value !== null || (plot?.lost.value && session.shown.value))
    return <NoPicture session={session} plot={plot} what="The timeline" />;
  if (!session.modules.compiled.value) return <Compiling />;
  if (focus === null) return <Waiting session={session} />;
  const load = focus.file.load.value;
  if (load.state === "error") {
    const { file } = focus;
    const views = session.workspace.value;
    const choice = file.tooLarge.value?.choice;
    if (choice && views) {
      return (
        <views.ui.PartForm session={session} file={file} failure={load.failure} choice={choice} />
      );
    }
    return (
      <Quiet>
        <Unread session={session} file={file} load={load} />
      </Quiet>
    );
  }
  if (load.state !== "ready") return <Reading file={focus.file} />;
  const trace = session.trace.value;
  if (!trace?.device)
    return (
      <Words
        title="No device"
        text="The file names no device with events or segments."
        hint={null}
      />
    );
  if (trace.device.note !== null)
    return <Words title="No timeline" text={trace.device.note} hint={null} />;
  return focus.file.client.value === null || focus.file.progress.value ? (
    <Reading file={focus.file} again />
  ) : null;
}

/** Files were opened before the worker's module was there. */
function Compiling() {
  return (
    <Quiet>
      <p>Waiting for the viewer to load</p>
      <p class="dim">Your files are queued. They are read as soon as the viewer is ready.</p>
    </Quiet>
  );
}

/** Before the first rank is ready; when none can be read, that. */
function Waiting({ session }: { session: Session }) {
  const files = session.run.value?.files ?? [];
  const failed = files.every((file) => file.load.value.state === "error");
  if (failed)
    return (
      <Words title="None of these could be read" text="The reason is on each row." hint={null} />
    );
  return (
    <Quiet>
      <p>Reading</p>
      <p class="dim">The first rank that is ready is shown here.</p>
    </Quiet>
  );
}

function Reading({ file, again = false }: { file: RankFile; again?: boolean }) {
  const progress = file.progress.value;
  return (
    <Quiet>
      <p>{again ? `Reading ${file.path} again` : `Reading ${file.path}`}</p>
      <p class="dim num">{progress?.text ?? file.planned.size}</p>
      <span class="bar" style={{ "--fraction": progress?.fraction ?? 0 }} />
      {progress?.provisional && (
        <figure class="sketch" data-testid="provisional">
          <svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">
            <path d={progress.provisional.path} />
          </svg>
          <figcaption class="dim">
            {progress.provisional.text}, provisional: what was live before them is known at the end
          </figcaption>
        </figure>
      )}
    </Quiet>
  );
}
