// Rows of the overview: a rank with its card, or one that is being read.

import type { Card, OverviewRow } from "../../generated/protocol.js";
import { SPARK } from "../../generated/protocol.js";
import type { Row } from "../../run.js";
import { LoadAgain } from "../../ui/messages.js";
import type { ViewUses } from "../../views/workspace.js";
import { CategoryBars } from "./category-bars.js";

/** A filter by category, before its name. */
export const CATEGORY = "category:";

type KnownProperties = ViewUses<
  "ranks" | "selection" | "navigation" | "appearance" | "filters" | "groups"
> & {
  /** The key of the row. */
  of: number;
  place: number;
  /** Whether it is the first of its folder. */
  first: boolean;
};

/** A rank with a card, which may still have to come. */
export function Known({ of, place, first, ...owners }: KnownProperties) {
  const { ranks, selection } = owners;
  const [shown, entry] = [ranks.shownOf(of), ranks.rowOf(of)];
  if (!entry) return null;
  const { row, card } = entry;
  if (shown && card)
    return <Rank {...owners} shown={shown} row={row} card={card} place={place} first={first} />;
  return (
    <tr class="rank-line" aria-rowindex={place} onClick={() => selection.look(row)}>
      <th scope="row">{row.label}</th>
      <td colSpan={6} />
    </tr>
  );
}

type RankProperties = ViewUses<"selection" | "navigation" | "appearance" | "filters" | "groups"> & {
  shown: OverviewRow;
  first: boolean;
  row: Row;
  card: Card;
  place: number;
};

function Rank(properties: RankProperties) {
  const { selection, navigation, appearance, filters, groups, shown, row, card, place, first } =
    properties;
  const load = row.file.load.value;
  const [requested, , , reserved] = card.bands;
  const open = () => {
    selection.look(row);
    navigation.open("timeline");
  };
  // A part of the bar chooses its category, too. By keyboard, the legend and the verdict's bar do.
  const click = (event: MouseEvent) => {
    // The verdict of the clicked rank may be taller and move the rows. So the second click of a
    // double-click may meet another row, but it opens the rank of the first.
    if (event.detail > 1) {
      navigation.open("timeline");
      return;
    }
    const part = event.target instanceof Element ? event.target.closest("[data-category]") : null;
    const isFocused = selection.isFocused(row);
    selection.look(row);
    if (part === null) return;
    const terms = [CATEGORY + part.getAttribute("data-category")];
    if (isFocused || !groups.isChosen(terms)) groups.choose(terms, event);
  };
  const categories = filters.terms.value.flatMap((term) =>
    term.startsWith(CATEGORY) ? [term.slice(CATEGORY.length)] : [],
  );
  return (
    <tr
      class="rank-line"
      data-testid="overview-row"
      data-path={card.path}
      data-outlier={shown.outlier !== ""}
      aria-rowindex={place}
      aria-selected={selection.isFocused(row)}
      onClick={click}
    >
      <th scope="row">
        <button type="button" class="link" title={`${card.path}: open its timeline`} onClick={open}>
          {first && row.file.planned.group !== "" && (
            <span class="group">{row.file.planned.group} / </span>
          )}
          {row.label}
        </button>
        {shown.outlier !== "" && (
          <span class="badge" data-severity="medium" title={shown.outlier}>
            outlier
          </span>
        )}
        {load.state === "error" && (
          <span class="badge" data-severity="high" title={load.failure.message}>
            not loaded
          </span>
        )}
      </th>
      <td class="bar-cell">
        <svg
          viewBox="0 0 1 1"
          preserveAspectRatio="none"
          role="img"
          aria-label={`${requested?.peak.text} of ${reserved?.peak.text} reserved`}
        >
          <CategoryBars
            appearance={appearance}
            shown={shown}
            card={card}
            labeled
            chosen={categories}
          />
        </svg>
      </td>
      <td
        class="num"
        data-value={requested?.peak.raw}
        data-column="peak"
        title={requested?.peak.exact}
      >
        {requested?.peak.text}
      </td>
      <td
        class="num"
        data-value={reserved?.peak.raw}
        data-column="reserved"
        title={reserved?.peak.exact}
      >
        {reserved?.peak.text}
      </td>
      <td
        class="num"
        data-value={requested?.end.raw}
        data-column="end"
        title={requested?.end.exact}
      >
        {requested?.end.text}
      </td>
      <td class="num" data-value={shown.notable} data-column="findings">
        {shown.ooms !== "" && (
          <span class="badge" data-severity="high" title={shown.ooms}>
            OOM
          </span>
        )}
        {shown.notable > 0 && (
          <span title={card.findings.map(({ record }) => record.title).join("\n")}>
            {shown.notable}
          </span>
        )}
      </td>
      <td class="spark">
        <svg viewBox={`0 0 ${SPARK[0]} ${SPARK[1]}`} preserveAspectRatio="none" aria-hidden="true">
          <path d={shown.spark} />
        </svg>
      </td>
    </tr>
  );
}

const STATES = {
  unread: "not read",
  queued: "queued",
  loading: "reading",
  ready: "computing",
  empty: "nothing was allocated on any device",
};

type PendingProperties = ViewUses<"runs" | "selection"> & { row: Row; place: number };

/** A rank that is being read, or could not be read. */
export function Pending({ runs, selection, row, place }: PendingProperties) {
  const load = row.file.load.value;
  const progress = row.file.progress.value;
  const isEmpty = load.state === "ready" && row.file.ownCards.value?.[row.part] === null;
  return (
    <tr
      class="rank-line"
      data-state={load.state}
      aria-rowindex={place}
      onClick={() => selection.look(row)}
    >
      <th scope="row">{row.label}</th>
      <td class="dim" colSpan={6}>
        {load.state === "error" ? (
          <>
            <span class="error">{load.failure.message}</span>
            {load.again && <LoadAgain runs={runs} file={row.file} class="link" />}
          </>
        ) : (
          (progress?.text ?? STATES[isEmpty ? "empty" : load.state])
        )}
      </td>
    </tr>
  );
}
