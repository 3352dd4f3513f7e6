// Live memory by category and call stack, in the details: at the time cursor, else at the peak.

import type { StateAt } from "../generated/protocol.js";
import { StackShares } from "./card.js";
import { Rows } from "./settings.js";
import type { ViewUses } from "./workspace.js";

/** Call stacks at the peak that fit without scrolling. */
const MAX_PEAK_STACKS = 6;
/** Findings in the details. The view has all of them. */
const MAX_FINDINGS = 3;

type StateProperties = ViewUses<
  "selection" | "viewSelection" | "navigation" | "appearance" | "queries" | "steps" | "groups"
>;

export function State(owners: StateProperties) {
  const { cursor } = owners.viewSelection;
  const state = owners.queries.stateAt.value.value;
  if (cursor.value === null) return <Initial {...owners} />;
  if (!state) return null;
  const { event, label, action } = state;
  const clear = () => {
    cursor.value = null;
  };
  return (
    <section class="moment" aria-labelledby="moment-title" data-testid="moment" data-event={event}>
      <h3 id="moment-title">
        At the cursor{" "}
        <button type="button" class="link" onClick={clear}>
          clear
        </button>
      </h3>
      <p class="mono">{label}</p>
      <p class="dim mono">{action}</p>
      <Rows rows={state.bands} />
      <Held {...owners} state={state} />
    </section>
  );
}

/** Without a cursor and a selection: findings and the peak. */
function Initial(owners: StateProperties) {
  const { selection } = owners;
  if (selection.card.value !== null || selection.block.value !== null) return null;
  return (
    <>
      <Findings {...owners} />
      <AtPeak {...owners} />
    </>
  );
}

/** The first findings of high and medium severity, and the number of all others. */
function Findings({ queries, steps, navigation }: StateProperties) {
  // Replays add to the titles what is missing.
  const all = (queries.simulated.value.value ?? queries.findings.value.value)?.rows ?? [];
  const shown = all.filter(({ record }) => record.severity !== "low").slice(0, MAX_FINDINGS);
  const more = all.length - shown.length;
  if (shown.length === 0) return null;
  return (
    <ul class="notable" aria-label="Findings">
      {shown.map((finding) => {
        const { id, severity, title, text, action, bytes, events } = finding.record;
        const { label, place } = finding.view;
        return (
          <li key={id}>
            <button
              type="button"
              class="finding-line"
              data-severity={severity}
              title={[text, action].filter((words) => words !== "").join("\n")}
              onClick={() => void steps.openFinding(finding)}
            >
              <span class="finding-name">{title}</span>
              <span class="dim">
                {[label, bytes.text, place, events[0]?.text].filter(Boolean).join(" · ")}
              </span>
            </button>
          </li>
        );
      })}
      {more > 0 && (
        <li>
          <button type="button" class="link" onClick={() => navigation.open("findings")}>
            {more} more
          </button>
        </li>
      )}
    </ul>
  );
}

function AtPeak(owners: StateProperties) {
  const { queries, steps, navigation } = owners;
  const state = queries.peak.value.value;
  if (!state || state.stacks.length === 0) return null;
  const go = () => steps.goTo(state.event);
  return (
    <section
      class="moment"
      aria-labelledby="peak-title"
      data-testid="at-peak"
      data-event={state.event}
    >
      <h3 id="peak-title">
        At the peak{" "}
        <button type="button" class="link" title="Move cursor to peak (P)" onClick={go}>
          Jump to peak
        </button>
      </h3>
      <Held {...owners} state={{ ...state, stacks: state.stacks.slice(0, MAX_PEAK_STACKS) }} />
      <button type="button" class="link" onClick={() => navigation.open("flame")}>
        Open as flame graph
      </button>
    </section>
  );
}

type HeldProperties = ViewUses<"appearance" | "groups"> & { state: StateAt };

/** Live memory by category and by call stack. */
function Held({ appearance, groups, state }: HeldProperties) {
  const { blocks, categories, stacks } = state;
  return (
    <>
      <p class="dim" data-value={blocks.raw}>
        {blocks.exact} live
      </p>
      <ul class="shares">
        {categories.map(({ name, label: text, bytes, share, color }) => (
          <li key={name}>
            <button
              type="button"
              class="share"
              data-category={name}
              title={`Filter by ${text}`}
              aria-pressed={groups.isChosen([`category:${name}`])}
              onClick={(event) => groups.choose([`category:${name}`], event)}
            >
              <span
                class="share-bar"
                style={{ width: `${share * 100}%`, background: appearance.swatch(color) }}
              />
              <span class="share-text">{text}</span>
              <span class="num" data-value={bytes.raw} title={bytes.exact}>
                {bytes.text}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {stacks.length > 0 && <h4>By call stack</h4>}
      <StackShares appearance={appearance} groups={groups} stacks={stacks} />
    </>
  );
}
