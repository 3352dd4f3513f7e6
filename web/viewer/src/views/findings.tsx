// The findings as cards, the worst first. Those of low severity are folded, and so is what the file
// cannot show.

import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../ui/icons.js";
import { Finding } from "./finding.js";
import type { FindingCard } from "./queries.js";
import { saveTable } from "./save.js";
import type { ViewUses } from "./workspace.js";

/** Cards that are shown at first, and with each further step: unequal files have many. */
const PAGE = 20;

type FindingsProperties = ViewUses<
  | "viewSelection"
  | "runs"
  | "selection"
  | "navigation"
  | "status"
  | "queries"
  | "ranks"
  | "steps"
  | "groups"
  | "cards"
  | "workspace"
>;

export function Findings(owners: FindingsProperties) {
  const { selection, navigation, queries, ranks } = owners;
  const view = useRef<HTMLDivElement>(null);
  const [choice, setChoice] = useState<boolean | null>(null);
  const cards = queries.cards.value;
  const wanted = navigation.shownFinding.value;
  const isWanted = ({ members }: FindingCard) => members.some(({ record }) => record.id === wanted);
  const small = cards?.filter((card) => card.small) ?? [];
  const notable = cards?.filter((card) => !card.small) ?? [];
  // What is folded must not hide all there is, nor what another view leads to.
  const areSmallOpen = choice ?? notable.length === 0;
  useEffect(() => {
    if (wanted === null || !cards) return;
    if (!areSmallOpen && small.some(isWanted)) {
      setChoice(true);
      return;
    }
    const shown = cards.find(isWanted)?.members[0]?.record.id;
    const all = [...(view.current?.querySelectorAll<HTMLElement>("[data-id]") ?? [])];
    const card = all.find((each) => each.getAttribute("data-id") === shown);
    if (!card) return;
    navigation.shownFinding.value = null;
    card.scrollIntoView({ block: "nearest" });
    card.querySelector<HTMLElement>(".finding-open")?.focus({ preventScroll: true });
  });
  if (cards === null)
    return (
      <p class="quiet">{selection.target ? "Searching for problems" : "Open a file first."}</p>
    );
  const blindSpots = queries.findings.value.value?.blindSpots ?? [];
  if (cards.length === 0) {
    return (
      <div class="quiet">
        <h3>No problems found</h3>
        <p>
          No out-of-memory event, no growth from step to step, and no memory that is held or
          reserved without use.
        </p>
        <BlindSpots sentences={blindSpots} />
      </div>
    );
  }
  const overview = ranks.overview.value;
  return (
    <div class="findings-view" ref={view}>
      <div class="toolbar">
        <h3 class="findings-count" data-testid="findings-count" data-value={overview?.notable}>
          {overview?.notableText}
        </h3>
        <span class="toolbar-end">
          {(["csv", "json"] as const).map((form) => (
            <button
              key={form}
              type="button"
              class="button plain"
              title={`Save the findings of this rank as ${form.toUpperCase()}`}
              onClick={() => void saveTable(selection, { findings: {} }, form, "findings")}
            >
              {form.toUpperCase()}
            </button>
          ))}
        </span>
      </div>
      <div class="findings">
        <Cards {...owners} label="Findings" shown={notable} />
        {overview && overview.omitted !== "" && <p class="quiet">{overview.omitted}</p>}
        {small.length > 0 && (
          <section class="small-findings" aria-label="Small findings">
            <button
              type="button"
              class="button plain"
              data-testid="small-findings"
              aria-expanded={areSmallOpen}
              onClick={() => setChoice(!areSmallOpen)}
            >
              <Icon name={areSmallOpen ? "up" : "down"} /> {overview?.smallText}
            </button>
            {areSmallOpen && <Cards {...owners} label="Small findings" shown={small} />}
          </section>
        )}
        <BlindSpots sentences={blindSpots} />
      </div>
    </div>
  );
}

type CardsProperties = FindingsProperties & { label: string; shown: readonly FindingCard[] };

function Cards({ label, shown, ...owners }: CardsProperties) {
  const [count, setCount] = useState(PAGE);
  const wanted = owners.navigation.shownFinding.value;
  const at = shown.findIndex(({ members }) => members.some(({ record }) => record.id === wanted));
  const length = Math.max(count, wanted === null ? 0 : at + 1);
  useEffect(() => setCount(length), [length]);
  if (shown.length === 0) return null;
  const rest = shown.length - length;
  return (
    <>
      <ul aria-label={label}>
        {shown.slice(0, length).map((card) => (
          <li key={`${card.members[0]?.record.path} ${card.members[0]?.record.id}`}>
            <Finding {...owners} card={card} />
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <button
          type="button"
          class="button plain findings-more"
          data-value={rest}
          onClick={() => setCount(length + PAGE)}
        >
          {rest > PAGE ? `Show ${PAGE} more of ${rest}` : `Show ${rest} more`}
        </button>
      )}
    </>
  );
}

function BlindSpots({ sentences }: { sentences: readonly string[] }) {
  if (sentences.length === 0) return null;
  return (
    <details class="blind-spots" data-testid="blind-spots">
      <summary>What could not be looked for</summary>
      <ul>
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </details>
  );
}
