// The memory of a device at one moment, to scale: what blocks hold, what is reserved and not used,
// the limit as a line, and the request that failed across it. A number stands in the bar where it
// fits whole, else in the legend.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { BarPart, MemoryBar } from "../../generated/protocol.js";
import { rove } from "../../views/rove.js";
import type { ViewUses } from "../../views/workspace.js";

type BarUses = ViewUses<"groups" | "appearance" | "viewSelection" | "levers">;

/** The width of a letter of a label, and of its padding, in CSS pixels. */
const LETTER = 6.7;
const PADDING = 14;
const widthOf = (text: string) => text.length * LETTER + PADDING;

/** Half of the width of a tick's label, in CSS pixels. */
const TICK = 24;

/** What stands in a part: its name and number, its number, or nothing. */
type Inside = "all" | "number" | "nothing";

function insideOf({ label, bytes, from, to }: BarPart, width: number): Inside {
  const room = (to - from) * width;
  if (room >= widthOf(`${label} ${bytes.text}`)) return "all";
  return room >= widthOf(bytes.text) ? "number" : "nothing";
}

/** Where the name of the limit ends: at its line, or at the end of the bar for want of room. */
function nameEnd(at: number, label: string, head: string, width: number): number {
  const [own, both] = [widthOf(label), widthOf(label) + widthOf(head)];
  return at * width < (both < width ? both : own) ? 1 : at;
}

const percent = (share: number) => `${share * 100}%`;

/** Narrower parts cannot be seen, in CSS pixels. The legend counts them. */
const MIN_SEEN = 1.5;

export function Bar({ bar, ...owners }: BarUses & { bar: MemoryBar }) {
  const { request, moment, reserved, ticks } = bar;
  const limit = limitOf(bar, owners);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  // The plot has the event.
  const head = `reserved ${moment.split(",")[0]}`;
  const asked = request ? `request ${request.bytes.text}` : "";
  // A request lies over what the driver has free.
  const parts = bar.parts.filter(({ name }) => request === null || name !== "device_free");
  const isSeen = ({ from, to }: BarPart) => (to - from) * width >= MIN_SEEN;
  const tiny = parts.filter((part) => !isSeen(part));
  const shown = parts.map((part) => ({ part, inside: insideOf(part, width) }));
  return (
    <div
      class="memory-bar"
      data-testid="memory-bar"
      data-reserved={reserved.raw}
      data-event={bar.event ?? undefined}
    >
      <p class="memory-head">
        <span title={`${reserved.text} reserved ${moment}`}>{head}</span>
        {limit && (
          <span
            class="memory-limit-name"
            style={{ "--at": percent(nameEnd(limit.at, limit.label, head, width)) }}
          >
            {limit.label}
          </span>
        )}
      </p>
      <div class="memory-scale" ref={box}>
        <div class="memory-parts" role="toolbar" aria-label="Memory, to scale" onKeyDown={rove}>
          {shown.map(({ part, inside }, index) => (
            <Part key={part.name} {...owners} part={part} inside={inside} isFirst={index === 0} />
          ))}
        </div>
        {request && (
          <span
            class="memory-request"
            style={{
              left: percent(request.from),
              width: percent(request.to - request.from),
              "--limit": percent(limitWithin(request, limit?.at ?? request.from)),
            }}
            title={request.title}
            data-part="request"
            data-value={request.bytes.raw}
          />
        )}
        {limit && (
          <span
            class="memory-capacity"
            data-failed={request !== null}
            style={{ left: percent(limit.at) }}
            title={limit.title}
            data-value={limit.raw}
          />
        )}
      </div>
      <div class="memory-ticks" aria-hidden="true">
        {ticks
          .filter(({ at }) => at * width + TICK < width - widthOf(asked))
          .map(({ at, label }) => (
            <span key={label} style={{ left: percent(at) }}>
              {label}
            </span>
          ))}
        {request && <b class="memory-asked">{asked}</b>}
      </div>
      <ul class="memory-legend" aria-label="Legend">
        {shown
          .filter(({ part, inside }) => inside !== "all" && isSeen(part))
          .map(({ part, inside }) => (
            <li key={part.name} title={part.title}>
              <Swatch {...owners} part={part} /> {part.label}
              {inside === "nothing" && <span class="num"> {part.bytes.text}</span>}
            </li>
          ))}
        {tiny.length > 0 && (
          <li class="dim" title={tiny.map(({ title }) => title).join("\n")}>
            +{tiny.length}
            <span class="visually-hidden"> {tiny.map(({ title }) => title).join("; ")}</span>
          </li>
        )}
      </ul>
    </div>
  );
}

/** A line across the bar. */
interface LimitLine {
  at: number;
  label: string;
  title: string;
  raw: string;
}

/** The limit of the chosen GPU, else of the file; else what the run needs, if it was replayed. */
function limitOf(bar: MemoryBar, { viewSelection, levers }: BarUses): LimitLine | null {
  const chosen = viewSelection.capacity.value;
  if (chosen !== null) {
    // A limit beyond the bar is no line on it: the table says that the run fits.
    if (chosen > bar.whole) return null;
    const title = `${chosen.toLocaleString("en")} bytes`;
    return { at: chosen / bar.whole, label: "GPU limit for PyTorch", title, raw: String(chosen) };
  }
  if (bar.capacity) {
    const { at, label, bytes } = bar.capacity;
    return { at, label, title: bytes.exact, raw: bytes.raw };
  }
  const needs = levers.table.value.value?.now?.needs;
  if (!needs || bar.request !== null || Number(needs.raw) > bar.whole) return null;
  return {
    at: Number(needs.raw) / bar.whole,
    label: "needed",
    title: `PyTorch must have ${needs.exact}`,
    raw: needs.raw,
  };
}

/** Where the limit is in a request, from 0 to 1. What lies beyond it does not fit. */
const limitWithin = ({ from, to }: BarPart, limit: number) =>
  Math.min(1, Math.max(0, (limit - from) / (to - from)));

function Swatch({ part: { name, color }, appearance }: ViewUses<"appearance"> & { part: BarPart }) {
  const swatch = color === null ? undefined : appearance.swatch(color);
  return <span class="memory-swatch" data-part={name} style={{ "--part": swatch }} />;
}

type PartProperties = BarUses & { part: BarPart; inside: Inside; isFirst: boolean };

function Part({ part, inside, isFirst, groups, appearance }: PartProperties) {
  const { name, label, bytes, title, from, to, color, filter } = part;
  const common = {
    class: "memory-part",
    style: {
      left: percent(from),
      width: percent(to - from),
      "--part": color === null ? undefined : appearance.swatch(color),
      "--on": color === null ? undefined : `var(--on-${name})`,
    },
    title,
    "data-part": name,
    "data-value": bytes.raw,
  };
  const words = inside !== "nothing" && (
    <span aria-hidden="true">{inside === "all" ? `${label} ${bytes.text}` : bytes.text}</span>
  );
  if (filter === null)
    return (
      <span role="img" aria-label={title} {...common}>
        {words}
      </span>
    );
  return (
    <button
      type="button"
      aria-label={title}
      tabIndex={isFirst ? 0 : -1}
      aria-pressed={groups.isChosen([filter])}
      {...common}
      onClick={(event) => groups.choose([filter], event)}
    >
      {words}
    </button>
  );
}
