// What stands in the place of something that cannot be shown: what happened, and what can be done
// about it.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Load, RankFile } from "../client/rank-file.js";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Session } from "../session.js";

interface WordsProperties {
  title: string;
  text: string;
  hint: string | null;
  /** Nothing of the file can be shown. */
  unread?: boolean;
  /** A button. */
  children?: ComponentChildren;
}

export function Words({ title, text, hint, children }: WordsProperties) {
  return (
    <Quiet>
      <Lines title={title} text={text} hint={hint}>
        {children}
      </Lines>
    </Quiet>
  );
}

function Lines({ title, text, hint, unread = false, children }: WordsProperties) {
  return (
    <div class="words" data-unread={unread}>
      <h3>{title}</h3>
      <p>{text}</p>
      {hint !== null && <p class="dim">{hint}</p>}
      {children && <p class="words-action">{children}</p>}
    </div>
  );
}

/** Over a plot. */
export function Quiet({ children }: { children: ComponentChildren }) {
  return (
    <div class="plot-state">
      <div>{children}</div>
    </div>
  );
}

interface UnreadProperties {
  session: Session;
  file: RankFile;
  load: Load & { state: "error" };
}

/** A file that could not be read, or whose worker has stopped. */
export function Unread({ session, file, load: { failure, again } }: UnreadProperties) {
  useEffect(() => {
    session.spoken.value = failure.message;
  }, [session, failure]);
  // Where a part can be chosen, the timeline has the words, and the form.
  if (file.tooLarge.value?.choice)
    return <Lines title="No part is open" text="Choose one in the timeline." hint={null} />;
  return (
    <Lines
      title={`${file.path} ${again ? "is not loaded" : "could not be read"}`}
      text={failure.message}
      hint={failure.hint}
      unread
    >
      {again && <Again session={session} file={file} class="button primary" />}
    </Lines>
  );
}

/** Reads a file once more. */
export function Again({
  session,
  file,
  class: name,
}: {
  session: Session;
  file: RankFile;
  class: string;
}) {
  return (
    <button
      type="button"
      class={name}
      data-testid="load-again"
      onClick={(event) => {
        event.stopPropagation();
        session.pool.again(file);
      }}
    >
      Load again
    </button>
  );
}

const WITHOUT = "The overview, findings, tables and comparison need no picture.";
const REFUSED = `Switch on hardware acceleration in the browser's settings, or close other pages that draw. ${WITHOUT}`;

interface NoPictureProperties {
  session: Session;
  plot: CanvasPlot<unknown> | null;
  /** What cannot be drawn. */
  what: string;
}

/** Over a canvas that nothing can be drawn on, now or at all. */
export function NoPicture({ session, plot, what }: NoPictureProperties) {
  const refused = session.drawingFailure.value;
  const again = (words: string) => (
    <button
      type="button"
      class="button primary"
      data-testid="draw-again"
      onClick={() => session.drawAgain()}
    >
      {words}
    </button>
  );
  if (refused !== null) {
    return (
      <Words
        title={`${what} cannot be drawn here`}
        text={refused.message}
        hint={refused.hint ?? REFUSED}
      >
        {again("Try again")}
      </Words>
    );
  }
  if (!plot?.lost.value) return null;
  return (
    <Words
      title="The picture was lost"
      text="The browser has taken the graphics memory away, for another program or because the GPU was reset."
      hint={`It mostly comes back by itself. Nothing else is lost. ${WITHOUT}`}
    >
      {again("Draw again")}
    </Words>
  );
}
