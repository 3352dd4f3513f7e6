// The overview of all ranks: peak by category, reserved and final memory, findings, usage over
// time.

import { useRef } from "preact/hooks";
import type { OverviewRow, RankCard, RankSort } from "../generated/protocol.js";
import { SPARK } from "../generated/protocol.js";
import type { Row } from "../run.js";
import { Chunks } from "../ui/chunks.js";
import { LoadAgain } from "../ui/messages.js";
import { CategoryBars } from "./category-bars.js";
import type { ViewUses } from "./workspace.js";

/** Differences between ranks that are listed above the table. All are in Anomalies. */
const MAX_OUTLIERS = 20;
/** A filter by category, before its name. */
const CATEGORY = "category:";
const BARS = "peak by category (gray: reserved)";

const RANK: readonly [RankSort, string] = ["rank", "rank"];
const COLUMNS: readonly (readonly [RankSort, string])[] = [
  ["peak", "peak"],
  ["reserved", "reserved"],
  ["end", "end"],
  ["findings", "findings"],
];

type OverviewProperties = ViewUses<
  "runs" | "selection" | "filters" | "groups" | "navigation" | "appearance" | "ranks" | "steps"
>;

export function Overview(owners: OverviewProperties) {
  const { runs, selection, navigation, ranks, steps } = owners;
  const overview = ranks.overview.value;
  const rows = runs.rows.value;
  const { waiting, failed } = runs.tally.value;
  const known = overview?.rows ?? [];
  const others = rows.filter((row) => ranks.overviewOf(row) === undefined);
  const scroller = useRef<HTMLDivElement>(null);
  const focus = selection.focus.value;
  const focusedKey = focus && ranks.keyOf(focus);
  const focused = known.findIndex(({ key }) => key === focusedKey);
  const first = known[0] && ranks.rowOf(known[0].key);
  return (
    <div class="overview">
      <div class="toolbar">
        <span class="dim" data-testid="overview-text">
          {overview?.text}
        </span>
        {first && <Categories {...owners} card={first.card} />}
        {waiting > 0 && (
          <span class="toolbar-end dim" role="status">
            {rows.length - waiting - failed} of {rows.length} read
          </span>
        )}
      </div>
      {overview && overview.outliers.length > 0 && (
        <ul class="outliers" aria-label="Differences between ranks">
          {overview.outliers.slice(0, MAX_OUTLIERS).map((finding) => (
            <li key={finding.id + finding.path}>
              <button
                type="button"
                class="finding-line"
                data-severity={finding.severity}
                title={finding.action}
                onClick={() => void steps.openFinding(finding)}
              >
                <span class="finding-name">{finding.title}</span>{" "}
                <span class="dim">{finding.text}</span>
              </button>
            </li>
          ))}
          {overview.outliers.length > MAX_OUTLIERS && (
            <li>
              <button type="button" class="link" onClick={() => navigation.open("anomalies")}>
                Show the others
              </button>
            </li>
          )}
        </ul>
      )}
      <div class="grid-scroll" ref={scroller}>
        <table class="grid ranks" aria-rowcount={known.length + others.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <Head ranks={ranks} column={RANK} />
              <th scope="col" title={BARS}>
                {BARS}
              </th>
              {COLUMNS.map((column) => (
                <Head key={column[0]} ranks={ranks} column={column} />
              ))}
              <th scope="col">usage over time</th>
            </tr>
          </thead>
          <Chunks
            of="body"
            count={known.length + others.length}
            pinned={focused}
            scroller={scroller}
            row={(index) => {
              const [shown, other] = [known[index], others[index - known.length]];
              const entry = shown && ranks.rowOf(shown.key);
              const place = index + 2;
              if (shown && entry)
                return <Rank key={shown.key} {...owners} shown={shown} {...entry} place={place} />;
              if (!other) return null;
              const key = `${other.file.planned.file}/${other.part}`;
              return (
                <Pending key={key} runs={runs} selection={selection} row={other} place={place} />
              );
            }}
          />
        </table>
      </div>
    </div>
  );
}

type HeadProperties = ViewUses<"ranks"> & { column: readonly [RankSort, string] };

function Head({ ranks, column: [sort, text] }: HeadProperties) {
  const now = ranks.sort.value;
  const direction = now.descending ? "descending" : "ascending";
  return (
    <th
      scope="col"
      aria-sort={now.sort === sort ? direction : "none"}
      data-number={sort !== "rank"}
    >
      <button type="button" class="sort" onClick={() => void ranks.sortBy(sort)}>
        {text}
      </button>
    </th>
  );
}

type CategoriesProperties = ViewUses<"appearance" | "filters" | "groups"> & { card: RankCard };

/** The colors of the bars. A category chooses its blocks, in all views. */
function Categories({ appearance, filters, groups, card }: CategoriesProperties) {
  return (
    <ul class="legend" aria-label="Categories">
      {card.categories.map(({ name, label, color }) => {
        const term = CATEGORY + name;
        return (
          <li key={name}>
            <button
              type="button"
              class="legend-entry"
              aria-pressed={filters.terms.value.includes(term)}
              title={`Show only ${label}`}
              onClick={(event) => groups.choose([term], event)}
            >
              <span class="swatch" style={{ background: appearance.swatch(color) }} /> {label}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

type RankProperties = ViewUses<"selection" | "navigation" | "appearance" | "filters" | "groups"> & {
  shown: OverviewRow;
  row: Row;
  card: RankCard;
  place: number;
};

function Rank(properties: RankProperties) {
  const { selection, navigation, appearance, filters, groups, shown, row, card, place } =
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
          {shown.group !== "" && <span class="group">{shown.group} / </span>}
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
      <td class="num" data-value={card.end.raw} data-column="end" title={card.end.exact}>
        {card.end.text}
      </td>
      <td class="num" data-value={shown.notable} data-column="findings">
        {card.ooms.raw !== "0" && (
          <span class="badge" data-severity="high" title={`${card.ooms.exact}`}>
            OOM
          </span>
        )}
        {shown.notable > 0 && (
          <span title={card.findings.map(({ title }) => title).join("\n")}>{shown.notable}</span>
        )}
      </td>
      <td class="spark">
        <svg viewBox={`0 0 ${SPARK[0]} ${SPARK[1]}`} preserveAspectRatio="none" aria-hidden="true">
          <path d={card.spark} />
        </svg>
      </td>
    </tr>
  );
}

const STATES = {
  queued: "queued",
  loading: "reading",
  ready: "computing",
  empty: "nothing was allocated on any device",
};

type PendingProperties = ViewUses<"runs" | "selection"> & { row: Row; place: number };

/** A rank that is being read, or could not be read. */
function Pending({ runs, selection, row, place }: PendingProperties) {
  const load = row.file.load.value;
  const progress = row.file.progress.value;
  const isEmpty = load.state === "ready" && row.file.cards.value?.[row.part] === null;
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
