// Messages in place of content that cannot be shown: the cause, then the remedy.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Load, RankFile } from "../client/rank-file.js";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Uses } from "../stores.js";

/** Said of a file without a device. */
export const EMPTY = "This snapshot is empty: recording was off, or nothing ran on a GPU.";

interface MessageProperties {
  title: string;
  text: string;
  hint: string | null;
  /** Whether the file is not loaded. */
  unread?: boolean;
  /** A button. */
  children?: ComponentChildren;
}

export function Message({ title, text, hint, children }: MessageProperties) {
  return (
    <PlotMessage>
      <MessageText title={title} text={text} hint={hint}>
        {children}
      </MessageText>
    </PlotMessage>
  );
}

function MessageText({ title, text, hint, unread = false, children }: MessageProperties) {
  return (
    <div class="words" data-unread={unread}>
      <h3>{title}</h3>
      <p>{text}</p>
      {hint !== null && <p class="dim">{hint}</p>}
      {children && <p class="words-action">{children}</p>}
    </div>
  );
}

/** A message over a plot. */
export function PlotMessage({ children }: { children: ComponentChildren }) {
  return (
    <div class="plot-state">
      <div>{children}</div>
    </div>
  );
}

type UnreadProperties = Uses<"runs" | "status"> & {
  file: RankFile;
  load: Load & { state: "error" };
};

/** A file that could not be read, or whose worker crashed. */
export function Unread({ runs, status, file, load: { failure, again } }: UnreadProperties) {
  useEffect(() => status.announce(failure.message), [status, failure]);
  // The timeline has the message and the form for a file that is too large.
  if (file.tooLarge.value?.choice)
    return (
      <MessageText title="No part is open" text="Choose a part in the timeline." hint={null} />
    );
  return (
    <MessageText
      title={`${file.path} ${again ? "is not loaded" : "could not be read"}`}
      text={failure.message}
      hint={failure.hint}
      unread
    >
      {again && <LoadAgain runs={runs} file={file} class="button primary" />}
    </MessageText>
  );
}

/** A button that loads a file again. */
export function LoadAgain({
  runs,
  file,
  class: name,
}: Uses<"runs"> & {
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
        runs.pool.again(file);
      }}
    >
      Load again
    </button>
  );
}

const STILL_WORKS = "The overview, findings, tables and comparison still work.";
const REFUSED =
  "Switch on hardware acceleration in the browser's settings, or close other pages that use it. " +
  STILL_WORKS;

type NoPictureProperties = Uses<"plots"> & {
  plot: CanvasPlot<unknown> | null;
  /** The name of the plot. */
  what: string;
};

/** Over a canvas that cannot be drawn on. */
export function NoPicture({ plots, plot, what }: NoPictureProperties) {
  const refused = plots.failure.value;
  const again = (words: string) => (
    <button
      type="button"
      class="button primary"
      data-testid="draw-again"
      onClick={() => plots.redraw()}
    >
      {words}
    </button>
  );
  if (refused !== null) {
    return (
      <Message
        title={`${what} cannot be drawn here`}
        text={refused.message}
        hint={refused.hint ?? REFUSED}
      >
        {again("Try again")}
      </Message>
    );
  }
  if (!plot?.lost.value) return null;
  return (
    <Message
      title="The picture was lost"
      text="The browser lost its graphics memory: another program took it, or the GPU was reset."
      hint={`It usually recovers by itself. Nothing else is lost. ${STILL_WORKS}`}
    >
      {again("Draw again")}
    </Message>
  );
}
