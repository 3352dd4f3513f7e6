// What to change so that the run fits the GPU: the cheapest set of changes in each currency, and
// the largest batch.

import type { Cost, PlanCard, PlannedSet } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";

const COSTS: Readonly<Record<Cost, string>> = {
  none: "No cost: a setting",
  edit: "No cost: an edit",
  time: "Costs time",
  precision: "Costs precision",
  batch: "Costs batch",
};

export function Plan({ whatIfs }: ViewUses<"whatIfs">) {
  const { plan } = whatIfs;
  if (whatIfs.available.value === null) {
    return (
      <p class="plan-none" data-testid="plan">
        Choose a GPU above: then this says what fits it, and the cheapest changes that do.
      </p>
    );
  }
  const card = plan.value.value;
  if (card === null || card.record === null) {
    return plan.waiting.value ? (
      <p class="plan-none" aria-busy="true" data-testid="plan">
        Searching for the cheapest changes that fit
      </p>
    ) : null;
  }
  return (
    <section
      class="plan"
      aria-label="What fits"
      data-testid="plan"
      data-outcome={card.record.unchanged}
      data-value={card.record.needs_bytes.raw}
    >
      <p class="plan-text">{card.text}</p>
      <ul class="plan-sets">
        {card.record.sets.map((set, index) => (
          <li key={set.text}>
            <PlannedChange set={set} card={card} index={index} whatIfs={whatIfs} />
          </li>
        ))}
      </ul>
    </section>
  );
}

type SetProperties = ViewUses<"whatIfs"> & { set: PlannedSet; card: PlanCard; index: number };

function PlannedChange({ set, card, index, whatIfs }: SetProperties) {
  const { text, cost, needs_bytes: needs, recipe, conf } = set;
  const batch = card.batches[index] ?? "";
  const isShown = whatIfs.isAsked(conf, recipe);
  return (
    <button
      type="button"
      class="plan-set"
      aria-pressed={isShown}
      data-cost={cost}
      data-value={needs.raw}
      title="Predict this set"
      onClick={() => whatIfs.apply(conf, recipe)}
    >
      <span class="dim">{COSTS[cost]}</span>
      <b>{text}</b>
      <span>
        needs {needs.text}
        {batch !== "" && <span class="dim">; {batch} fits with it</span>}
      </span>
    </button>
  );
}
