// The card of a finding: what, why, what to do with its bytes, a picture of its proof, the ranks
// that have it, its call stack and its blocks.

import { useRef, useState } from "preact/hooks";
import type { FindingRow, Severity } from "../generated/protocol.js";
import { rowName } from "../run.js";
import { Icon } from "../ui/icons.js";
import { ActionChip } from "./action-chip.js";
import { alone, FindingBlocks, Frames, Parts } from "./finding-parts.js";
import { ProofChart } from "./proof-chart.js";
import type { FindingCard } from "./queries.js";
import type { ViewUses } from "./workspace.js";

/** Longer texts are cut after some lines at first, in characters. */
const LONG_TEXT = 260;
/** Ranks that are named at first. */
const FIRST_RANKS = 8;
/** A pointer that moves further between press and release selects text, in CSS pixels. */
const CLICK = 4;

type FindingProperties = ViewUses<
  | "viewSelection"
  | "runs"
  | "selection"
  | "navigation"
  | "status"
  | "steps"
  | "groups"
  | "cards"
  | "queries"
  | "workspace"
> & { card: FindingCard };

export function Finding({ card, ...owners }: FindingProperties) {
  const { steps, groups, workspace } = owners;
  const [worst] = card.members;
  const [isStackOpen, setStackOpen] = useState(false);
  const [areBlocksOpen, setBlocksOpen] = useState(false);
  const pressed = useRef({ x: 0, y: 0 });
  if (!worst) return null;
  const { id, kind, severity, bytes, title, text, action, children } = worst.record;
  const { label, actions, terms, frames, chart } = worst.view;
  const choose = (event: MouseEvent) => {
    const { x, y } = pressed.current;
    const isDrag = event.detail > 0 && Math.hypot(event.clientX - x, event.clientY - y) > CLICK;
    if (!isDrag) void steps.openFinding(worst, "here");
  };
  const show = () => void steps.openFinding(worst);
  return (
    // The title's button is the way by keyboard. The whole card takes the pointer.
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above
    <article
      class="finding"
      data-testid="finding"
      data-id={id}
      data-kind={kind}
      data-severity={severity}
      data-value={bytes.raw}
      data-ranks={card.members.length}
      data-chosen={groups.isChosen(terms)}
      onPointerDown={({ clientX: x, clientY: y }) => {
        pressed.current = { x, y };
      }}
      onClick={choose}
    >
      <header class="finding-head">
        <SeverityMark severity={severity} />
        <h4 class="finding-title">
          <button
            type="button"
            class="finding-open"
            title="Show its place in the timeline"
            onClick={alone(show)}
          >
            {title}
          </button>
        </h4>
        {!title.startsWith(label) && <span class="finding-kind">{label}</span>}
        <span class="num finding-bytes" title={bytes.exact}>
          {bytes.text}
        </span>
      </header>
      <div class="finding-body">
        <Text text={text} />
        {action !== "" && (
          <p class="finding-action">
            <Icon name="go" />
            <span class="visually-hidden">What to do: </span>
            <span data-action>{action}</span>
          </p>
        )}
        {actions.some(({ value }) => value !== "") && (
          <p class="finding-actions">
            {actions.map((each) => (
              <ActionChip key={each.text} {...owners} action={each} show={null} />
            ))}
          </p>
        )}
        <Places {...owners} card={card} worst={worst} />
        {children.length > 0 && <Parts parts={children} />}
      </div>
      {chart && <ProofChart chart={chart} />}
      <div class="finding-tools">
        <button type="button" class="button plain" onClick={alone(show)}>
          Show in timeline
        </button>
        {frames.length > 0 && (
          <button
            type="button"
            class="button plain"
            aria-expanded={isStackOpen}
            onClick={alone(() => setStackOpen(!isStackOpen))}
          >
            <Icon name={isStackOpen ? "up" : "down"} /> Call stack
          </button>
        )}
        {terms.length > 0 && (
          <button
            type="button"
            class="button plain"
            aria-expanded={areBlocksOpen}
            onClick={alone(() => setBlocksOpen(!areBlocksOpen))}
          >
            <Icon name={areBlocksOpen ? "up" : "down"} /> Blocks
          </button>
        )}
      </div>
      {isStackOpen && <Frames workspace={workspace} frames={frames} />}
      {areBlocksOpen && <FindingBlocks {...owners} finding={worst} />}
    </article>
  );
}

type PlacesProperties = ViewUses<"runs" | "steps"> & { card: FindingCard; worst: FindingRow };

/** The step and the event of a finding, and the ranks that have it, the worst first. */
function Places({ runs, steps, card, worst }: PlacesProperties) {
  const [isOpen, setOpen] = useState(false);
  const rows = runs.rows.value;
  const { place } = worst.view;
  const [first] = worst.record.events;
  const { text, members } = card;
  const named = isOpen ? members : members.slice(0, FIRST_RANKS);
  const rest = members.length - named.length;
  if (place === "" && !first && rows.length < 2) return null;
  const nameOf = (path: string) => {
    const row = rows.find(({ file }) => file.path === path);
    return row && row.file.planned.rank !== null ? rowName(row) : path;
  };
  return (
    <p class="finding-place">
      {place !== "" && (
        <button
          type="button"
          class="link"
          title="Show its range"
          onClick={alone(() => void steps.openFinding(worst))}
        >
          {place}
        </button>
      )}
      {first && (
        <button
          type="button"
          class="link num"
          title="Move the cursor to its first event"
          onClick={alone(() => void steps.openEvent(worst))}
        >
          {first.text}
        </button>
      )}
      {rows.length > 1 && text !== "" && <span class="finding-ranks">{text}:</span>}
      {rows.length > 1 &&
        named.map((member) => {
          const { path, title } = member.record;
          return (
            <button
              key={path}
              type="button"
              class="link path"
              data-rank={path}
              title={`${path}: ${title}`}
              onClick={alone(() => void steps.openFinding(member))}
            >
              {nameOf(path)}
            </button>
          );
        })}
      {rest > 0 && (
        <button type="button" class="link" onClick={alone(() => setOpen(true))}>
          and {rest} more
        </button>
      )}
    </p>
  );
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
