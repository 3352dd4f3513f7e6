// Curves of pinned ranks below the timeline, on its axis and on one scale of bytes.

import { PINNED_HEIGHT } from "../../generated/protocol.js";
import { type Row, rowName } from "../../run.js";
import { Icon } from "../../ui/icons.js";
import type { ViewUses } from "../../views/workspace.js";

/** What is equal at one position. */
const HINTS: Readonly<Record<string, string>> = {
  clock: "On the clock of the recordings",
  step: "Aligned by training step: the clocks of the recordings do not overlap",
  event: "Aligned by event: the recordings have no common clock and no steps",
};

export function PinnedLanes(owners: ViewUses<"pins" | "plots" | "selection" | "queries">) {
  const { pins } = owners;
  const rows = pins.rows.value;
  if (rows.length === 0) return null;
  const first = rows.map((row) => pins.lineOf(row)).find((line) => line !== null);
  return (
    <section class="pinned" aria-label="Pinned ranks" data-testid="pinned">
      <p class="pinned-head">
        <span class="dim">
          Pinned ranks, requested bytes
          {first && (
            <>
              {" "}
              from 0 to <span data-value={first.top.raw}>{first.top.text}</span>. The line is the
              rank above
            </>
          )}
        </span>
        <button type="button" class="link" onClick={() => pins.clear()}>
          Unpin all
        </button>
      </p>
      {rows.map((row) => (
        <Lane key={`${row.file.planned.file}/${row.part}`} {...owners} row={row} />
      ))}
    </section>
  );
}

type LaneProperties = ViewUses<"pins" | "plots" | "selection" | "queries"> & { row: Row };

function Lane({ pins, plots, selection, queries, row }: LaneProperties) {
  const line = pins.lineOf(row);
  const stretch = pins.stretch.value;
  const plot = plots.timeline.value;
  const range = plot?.range.value;
  const room = plot?.labels.value?.plot;
  const name = rowName(row);
  if (!range || !room) return null;
  const wide = range.x1 - range.x0;
  const across = stretch ? stretch.columns / (stretch.x1 - stretch.x0) : 1;
  const box = stretch && [
    (range.x0 - stretch.x0) * across,
    0,
    Math.max(1e-6, wide * across),
    PINNED_HEIGHT,
  ];
  const axis = selection.visibleTrace.value?.axis.kind;
  const cursor = queries.stateAt.value.value?.spans.find(({ kind }) => kind === axis);
  const at = cursor ? (cursor.x0 - range.x0) / wide : -1;
  const held = line?.held;
  const words = line
    ? [
        `${name}: peak ${line.peak.text}`,
        ...(held ? [`${held.text} at the cursor`] : []),
        HINTS[line.aligned],
      ]
    : [name];
  const load = row.file.load.value;
  return (
    <figure
      class="pinned-lane"
      data-testid="pinned-lane"
      data-path={row.file.path}
      data-aligned={line?.aligned}
      style={{ "--left": `${room.left}px`, "--width": `${room.width}px` }}
    >
      <button
        type="button"
        class="pinned-open"
        title={`${words.join("\n")}\nClick to put it in the center`}
        aria-label={`${words.join(", ")}. Put it in the center`}
        onClick={() => pins.swap(row)}
      >
        {box && line && (
          <svg viewBox={box.join(" ")} preserveAspectRatio="none" aria-hidden="true">
            <path class="pinned-fill" d={line.path} />
            {pins.main.value && <path class="pinned-main" d={pins.main.value.path} />}
          </svg>
        )}
      </button>
      {at >= 0 && at <= 1 && <span class="pinned-cursor" style={{ "--at": at }} />}
      <figcaption>
        <b title={row.file.path}>{name}</b>
        {line && (
          <>
            peak
            <span data-column="peak" data-value={line.peak.raw} title={line.peak.exact}>
              {line.peak.text}
            </span>
          </>
        )}
        {held && (
          <>
            at cursor
            <span data-column="held" data-value={held.raw} title={held.exact}>
              {held.text}
            </span>
          </>
        )}
      </figcaption>
      {line && line.aligned !== "clock" && (
        <p class="pinned-note" title={HINTS[line.aligned]}>
          aligned by {line.aligned}
        </p>
      )}
      {load.state === "error" && <p class="pinned-note error">{load.failure.message}</p>}
      <button
        type="button"
        class="button plain pinned-close"
        title={`Unpin ${name}`}
        aria-label={`Unpin ${name}`}
        onClick={() => pins.toggle(row)}
      >
        <Icon name="close" />
      </button>
    </figure>
  );
}

/** Closes a file. By keyboard, the palette does. */
export function CloseMark({ runs, loader, row }: ViewUses<"runs" | "loader"> & { row: Row }) {
  if (row.part > 0 || runs.run.value?.isIndexed) return null;
  const title = `Close ${rowName(row)}`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: an option has no elements for the Tab key
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above
    <span
      class="pin-mark close-mark"
      data-testid="close-file"
      title={title}
      onClick={(event) => {
        event.stopPropagation();
        void loader.close(row.file);
      }}
    >
      <Icon name="close" />
    </span>
  );
}

/** Pins a row of the rail. By keyboard, K and the palette do. */
export function PinMark({ pins, runs, row }: ViewUses<"pins" | "runs"> & { row: Row }) {
  if (runs.rows.value.length < 2 || row.file.load.value.state !== "ready") return null;
  const isPinned = pins.isPinned(row);
  const title = `${isPinned ? "Unpin" : "Pin"} ${rowName(row)} below the timeline (K)`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: an option has no elements for the Tab key
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above
    <span
      class="pin-mark"
      data-testid="pin"
      data-pinned={isPinned}
      title={title}
      onClick={(event) => {
        event.stopPropagation();
        pins.toggle(row);
      }}
    >
      <Icon name="pin" />
    </span>
  );
}
