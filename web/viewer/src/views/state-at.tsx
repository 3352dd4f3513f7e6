// Live memory by category and call stack at the time cursor, in the panel.

import type { StateAt } from "../generated/protocol.js";
import { StackShares } from "./card.js";
import { Rows } from "./detail-rows.js";
import type { ViewUses } from "./workspace.js";

type StateProperties = ViewUses<
  "selection" | "viewSelection" | "navigation" | "appearance" | "queries" | "steps" | "groups"
>;

export function State(owners: StateProperties) {
  const { cursor } = owners.viewSelection;
  const state = owners.queries.stateAt.value.value;
  if (!state || cursor.value === null) return null;
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
      <p>{label}</p>
      <p class="dim">{action}</p>
      <Rows rows={state.bands} />
      <Held {...owners} state={state} />
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
