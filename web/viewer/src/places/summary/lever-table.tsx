// The table "What to change": what the run needs as recorded and with each change. Chosen changes
// add up by a replay of all of them.

import type {
  AsRecorded,
  LeverItem,
  Levers as LeversAnswer,
  Outcome,
} from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import { Gpu } from "../../views/gpu.js";
import type { ViewUses } from "../../views/workspace.js";

export type LeversUses = ViewUses<
  "runs" | "viewSelection" | "queries" | "levers" | "sources" | "navigation"
>;

/** Rows that keep their height before the answer has come. */
const SKELETON = 7;

const ICONS = { fits: "check", fits_barely: "about", short: "close", unknown: "about" } as const;

type TableProperties = LeversUses & {
  /** The finding of the headline, and what to do about it; empty if nothing is known. */
  main: { id: string | null; remedy: string };
};

export function LeverTable({ main, ...owners }: TableProperties) {
  const { levers } = owners;
  const answer = levers.table.value.value;
  const first = answer?.rows[0];
  const isCured = first !== undefined && main.id !== null && first.cures === main.id;
  return (
    <section class="levers" aria-labelledby="levers-title" data-testid="levers">
      <div class="levers-head">
        <h3 id="levers-title">What to change</h3>
        <Gpu {...owners} />
      </div>
      <LeverHead answer={answer} />
      {answer === null ? (
        <Waiting />
      ) : (
        <>
          {answer.now && <Recorded now={answer.now} answer={answer} />}
          {!isCured && main.remedy !== "" && <Advice text={main.remedy} />}
          {answer.rows.map((item, index) => (
            <LeverRow
              key={item.id}
              {...owners}
              item={item}
              answer={answer}
              reason={index > 0 ? null : isCured && main.remedy !== "" ? main.remedy : item.why}
            />
          ))}
          {answer.note !== "" && <p class="levers-note dim">{answer.note}</p>}
        </>
      )}
      <div class="levers-foot">
        <Sum {...owners} />
        <button
          type="button"
          class="link"
          aria-keyshortcuts="u"
          title="All changes, the allocator's settings, and what is no lever (U)"
          onClick={() => {
            levers.isUnfolded.value = true;
          }}
        >
          All changes, allocator settings <Icon name="forward" />
        </button>
      </div>
    </section>
  );
}

export function LeverHead({ answer }: { answer: LeversAnswer | null }) {
  return (
    <div class="lever-row lever-heads" aria-hidden="true">
      <span />
      <span>change, place</span>
      <span class="number">needs</span>
      <span class="lever-gauge">{answer?.limit == null ? "of today" : "of the GPU"}</span>
      {answer?.limit != null && <span class="lever-verdict" />}
      <span class="lever-cost">cost</span>
      <span class="lever-basis">basis</span>
    </div>
  );
}

/** What to do where no replay has a number for it. */
function Advice({ text }: { text: string }) {
  return (
    <div class="lever-row lever-advice" data-first="true" data-testid="advice">
      <span />
      <p>{text}</p>
    </div>
  );
}

function Waiting() {
  return (
    <div aria-busy="true" data-testid="levers-waiting">
      <p class="visually-hidden">Replaying the run with changes</p>
      {Array.from({ length: SKELETON }, (_, index) => (
        <div key={index} class="lever-row lever-wait" data-first={index === 0}>
          <span />
          <span class="skeleton" />
          <span class="skeleton" />
        </div>
      ))}
    </div>
  );
}

export function Recorded({ now, answer }: { now: AsRecorded; answer: LeversAnswer }) {
  return (
    <div
      class="lever-row lever-now"
      data-testid="as-recorded"
      data-outcome={now.outcome ?? undefined}
    >
      <span />
      <span>{now.text}</span>
      <span class="number" data-value={now.needs.raw} title={now.needs.exact}>
        {now.needs.text}
      </span>
      <Gauge needs={now.gauge} answer={answer} />
      <Verdict outcome={now.outcome} text={now.verdict} answer={answer} />
    </div>
  );
}

type RowProperties = ViewUses<"levers" | "sources"> & {
  item: LeverItem;
  answer: LeversAnswer;
  /** A line below the change, which makes a card of the row; null for a plain row. */
  reason?: string | null;
  /** Called when the row is pointed at or focused. */
  look?: () => void;
  isLooked?: boolean;
};

export function LeverRow({
  item,
  answer,
  reason = null,
  look,
  isLooked = false,
  ...owners
}: RowProperties) {
  const { levers } = owners;
  const { id, text, needs, gauge, outcome, verdict, cost, basis, why, question } = item;
  const { time, timeBasis } = item;
  const isChosen = levers.isChosen(item);
  const isCard = reason !== null;
  const place = <LeverPlace item={item} {...owners} />;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: what is focused inside shows its edit
    <div
      class="lever-row"
      data-testid="lever"
      data-id={id}
      data-value={needs.raw}
      data-question={question}
      data-first={isCard}
      data-looked={isLooked}
      data-outcome={outcome ?? undefined}
      onFocusCapture={look}
      onMouseEnter={look}
    >
      <input
        type="checkbox"
        checked={isChosen}
        disabled={question === ""}
        aria-label={text}
        title={question === "" ? "No replay has this change" : ""}
        onChange={() => levers.toggle(item)}
      />
      <span class="lever-what" title={why}>
        <b>{text}</b> {place}
      </span>
      <span class="number" data-value={needs.raw} title={needs.exact}>
        {needs.text}
      </span>
      <Gauge needs={gauge} answer={answer} />
      <Verdict outcome={outcome} text={verdict} answer={answer} />
      <span class="lever-cost" title={timeBasis}>
        {time || cost}
      </span>
      <span class="lever-basis">{basis}</span>
      {isCard && (reason !== "" || item.site !== "") && (
        <p class="lever-why" title={reason}>
          {place}
          {item.site !== "" && reason !== "" && ": "}
          {reason}
        </p>
      )}
    </div>
  );
}

function LeverPlace({ item, sources }: ViewUses<"sources"> & { item: LeverItem }) {
  const { site, file, line } = item;
  if (site === "") return null;
  if (line === 0) return <span class="dim">{site}</span>;
  return (
    <button type="button" class="place" onClick={() => sources.open(file, line)}>
      {site}
    </button>
  );
}

function Gauge({ needs, answer }: { needs: number; answer: LeversAnswer }) {
  const limit = answer.limit ?? -1;
  return (
    <span class="lever-gauge">
      <span
        class="gauge"
        data-limited={answer.limit !== null}
        style={{ "--needs": `${needs * 100}%`, "--limit": `${limit * 100}%` }}
      />
    </span>
  );
}

type VerdictProperties = { outcome: Outcome | null; text: string; answer: LeversAnswer };

function Verdict({ outcome, text, answer }: VerdictProperties) {
  if (answer.limit === null) return null;
  return (
    <span class="lever-verdict">
      {outcome && (
        <>
          <Icon name={ICONS[outcome]} /> {text}
        </>
      )}
    </span>
  );
}

/** What the run needs with all that is chosen. With one lever its row says it. */
export function Sum({ levers }: ViewUses<"levers">) {
  if (!levers.isSet.value) return <span />;
  const sum = levers.sum.value.value;
  const count = levers.count.value;
  const these = count === 1 ? "With this" : `With these ${count}`;
  if (sum === null || levers.sum.waiting.value) {
    return (
      <p class="lever-sum" aria-busy="true" data-testid="levers-sum">
        <b>{these}:</b> <span class="dim">replaying</span>
      </p>
    );
  }
  const { needs, outcome, verdict, basis, error } = sum;
  return (
    <p
      class="lever-sum"
      data-testid="levers-sum"
      data-outcome={outcome ?? undefined}
      aria-live="polite"
    >
      {needs ? (
        <>
          <b data-value={needs.raw} title={needs.exact}>
            {these}: {needs.text}
          </b>
          {outcome && (
            <span class="lever-verdict">
              <Icon name={ICONS[outcome]} /> {verdict}
            </span>
          )}
          <span class="dim">{basis}</span>
        </>
      ) : (
        <span class={error ? "error" : "dim"}>{error?.text ?? verdict}</span>
      )}
    </p>
  );
}
