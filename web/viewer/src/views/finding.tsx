// A finding: title and memory, the reason, what to do, its place, and the call sites behind it.

import { useRef, useState } from "preact/hooks";
import type { FindingPart, FindingRow, Severity } from "../generated/protocol.js";
import { Icon } from "../ui/icons.js";
import type { ViewUses } from "./workspace.js";

/** Call sites that are listed at first. */
const FIRST_PARTS = 3;
/** Longer texts are cut after some lines at first, in characters. */
const LONG_TEXT = 320;
/** A pointer that moves further between press and release selects text, in CSS pixels. */
const CLICK = 4;

type FindingProperties = ViewUses<"steps"> & {
  finding: FindingRow;
  /** The rank or file of the finding; null with one file. */
  owner: string | null;
};

export function Finding({ finding, owner, steps }: FindingProperties) {
  const { kind, label, severity, bytes, title, text, action, path, place, at, parts } = finding;
  const pressed = useRef({ x: 0, y: 0 });
  const open = () => void steps.openFinding(finding);
  const click = (event: MouseEvent) => {
    const { x, y } = pressed.current;
    const isDrag = event.detail > 0 && Math.hypot(event.clientX - x, event.clientY - y) > CLICK;
    if (!isDrag) open();
  };
  return (
    // The title's button is the way by keyboard. The whole row takes the pointer.
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above
    <article
      class="finding"
      data-testid="finding"
      data-id={finding.id}
      data-kind={kind}
      data-severity={severity}
      data-value={bytes.raw}
      onPointerDown={({ clientX: x, clientY: y }) => {
        pressed.current = { x, y };
      }}
      onClick={click}
    >
      <SeverityMark severity={severity} />
      <span class="finding-kind">{label}</span>
      <h4 class="finding-title">
        <button type="button" class="finding-open">
          {title}
        </button>
      </h4>
      <span class="num finding-bytes" title={bytes.exact}>
        {bytes.text}
      </span>
      <div class="finding-body">
        <Text text={text} />
        {action !== "" && (
          <p class="finding-action">
            <Icon name="go" />
            <span class="visually-hidden">What to do: </span>
            <span data-action>{action}</span>
          </p>
        )}
        {(place !== "" || at !== "" || owner !== null) && (
          <p class="finding-place">
            {place !== "" && (
              <button type="button" class="link" title="Show its range" onClick={alone(open)}>
                {place}
              </button>
            )}
            {at !== "" && (
              <button
                type="button"
                class="link num"
                title="Move the cursor to its first event"
                onClick={alone(() => void steps.openEvent(finding))}
              >
                {at}
              </button>
            )}
            {owner !== null && (
              <span class="path" title={path}>
                {owner}
              </span>
            )}
          </p>
        )}
        {parts.length > 0 && <Parts parts={parts} />}
      </div>
    </article>
  );
}

/** A handler of a link in a row, whose clicks are not clicks of the row. */
function alone(act: () => void): (event: MouseEvent) => void {
  return (event) => {
    event.stopPropagation();
    act();
  };
}

const LEVELS: readonly Severity[] = ["low", "medium", "high"];

/** Three bars, as many of them colored as the severity has. */
export function SeverityMark({ severity }: { severity: Severity }) {
  const level = LEVELS.indexOf(severity);
  return (
    <span class="severity" title={`${severity} severity`}>
      <span class="visually-hidden">{severity} severity</span>
      <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
        {LEVELS.map((name, bar) => (
          <rect
            key={name}
            data-on={bar <= level}
            x={0.5 + bar * 4}
            y={7 - bar * 3}
            width="3"
            height={4.5 + bar * 3}
            rx="0.75"
          />
        ))}
      </svg>
    </span>
  );
}

function Text({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const isLong = text.length > LONG_TEXT;
  return (
    <>
      <p class="finding-text" data-cut={isLong && !isOpen}>
        {text}
      </p>
      {isLong && (
        <button
          type="button"
          class="link finding-more"
          aria-expanded={isOpen}
          onClick={alone(() => setOpen(!isOpen))}
        >
          {isOpen ? "show less" : "show all"}
        </button>
      )}
    </>
  );
}

function Parts({ parts }: { parts: readonly FindingPart[] }) {
  const [isOpen, setOpen] = useState(false);
  const rest = parts.length - FIRST_PARTS;
  return (
    <>
      <ul class="parts" aria-label="Call sites">
        {(isOpen ? parts : parts.slice(0, FIRST_PARTS)).map(({ site, bytes, blocks }) => (
          <li key={site}>
            <span class="mono part-site" title={site}>
              {site}
            </span>
            <span class="num" data-value={bytes.raw} title={bytes.exact}>
              {bytes.text}
            </span>
            <span class="num dim">{blocks.raw !== "0" && blocks.exact}</span>
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <button
          type="button"
          class="link parts-more"
          aria-expanded={isOpen}
          onClick={alone(() => setOpen(!isOpen))}
        >
          {isOpen ? "show fewer" : `and ${rest} more`}
        </button>
      )}
    </>
  );
}
