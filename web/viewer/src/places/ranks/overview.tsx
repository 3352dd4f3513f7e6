// The overview of all ranks: peak by category, reserved and final memory, findings, usage over
// time.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { type FindingRow, MAX_ROWS, type RankSort } from "../../generated/protocol.js";
import type { Row } from "../../run.js";
import { Chunks } from "../../ui/chunks.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { FleetPanel } from "./fleet.js";
import { CATEGORY, Known, Pending } from "./overview-rows.js";
import type { Ranks } from "./ranks.js";

/** Differences between ranks that are listed above the table. All are in Findings. */
const MAX_OUTLIERS = 20;
/** Fewer rows have no filter. */
const MIN_FILTERED = 16;
const BARS = "peak by category (gray: reserved)";

const RANK: readonly [RankSort, string] = ["rank", "rank"];
const FILE: readonly [RankSort, string] = ["rank", "file"];
const COLUMNS: readonly (readonly [RankSort, string])[] = [
  ["peak", "peak"],
  ["reserved", "reserved"],
  ["end", "end"],
  ["findings", "findings"],
];

type OverviewProperties = ViewUses<
  | "runs"
  | "selection"
  | "viewSelection"
  | "filters"
  | "groups"
  | "navigation"
  | "appearance"
  | "ranks"
  | "steps"
>;

export function Overview({ shown: isShown, ...owners }: OverviewProperties & ViewProperties) {
  const { runs, selection, viewSelection, ranks } = owners;
  const overview = ranks.overview.value;
  const list = ranks.list.value;
  const known = (overview && list?.order) ?? [];
  const others = useOthers(owners, known);
  const scroller = useRef<HTMLDivElement>(null);
  const focus = selection.focus.value;
  const focusedKey = focus && ranks.keyOf(focus);
  const focused = focusedKey === null ? -1 : known.indexOf(focusedKey);
  const isComplete = runs.tally.value.waiting === 0;
  const hasRanks = runs.rows.value.some((row) => row.file.planned.rank !== null);
  const sizes = viewSelection.sizes.value;
  const capacity = viewSelection.capacity.value;
  const iteration = list?.iteration;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the picture is of these
  useEffect(() => {
    if (isShown && isComplete && overview !== null) void ranks.draw(focusedKey, capacity);
  }, [isShown, isComplete, overview, focusedKey, iteration, sizes, capacity]);
  return (
    <div class="overview">
      <Toolbar {...owners} first={known[0]} />
      {ranks.fleet.value && <FleetPanel {...owners} fleet={ranks.fleet.value} />}
      {overview && overview.outliers.length > 0 && (
        <Outliers {...owners} outliers={overview.outliers} />
      )}
      <div class="grid-scroll" ref={scroller}>
        <table
          class="grid ranks"
          aria-label="Ranks"
          aria-rowcount={known.length + others.length + 1}
        >
          <thead>
            <tr aria-rowindex={1}>
              <Head ranks={ranks} column={hasRanks ? RANK : FILE} />
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
            whole={(overview?.cards ?? 0) > MAX_ROWS ? 0 : MAX_ROWS}
            scroller={scroller}
            row={(index) => {
              const [shownKey, place] = [known[index], index + 2];
              if (shownKey !== undefined) {
                const isFirst = isNewGroup(ranks, known[index - 1], shownKey);
                return (
                  <Known key={shownKey} {...owners} of={shownKey} place={place} first={isFirst} />
                );
              }
              const other = others[index - known.length];
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

/** `first` is the key of the first row. */
function Toolbar({ first, ...owners }: OverviewProperties & { first: number | undefined }) {
  const { runs, ranks, viewSelection } = owners;
  const [overview, list] = [ranks.overview.value, ranks.list.value];
  const rows = runs.rows.value;
  const { waiting, failed } = runs.tally.value;
  const isIndexed = runs.run.value?.isIndexed ?? false;
  return (
    <div class="toolbar">
      <span class="dim" data-testid="overview-text">
        {overview && list?.peaks}
      </span>
      {list && list.text !== "" && (
        <span data-testid="shown-ranks" role="status">
          {list.text}
        </span>
      )}
      {first !== undefined && <Categories {...owners} of={first} />}
      {(overview?.cards ?? 0) >= MIN_FILTERED && <Filter viewSelection={viewSelection} />}
      {runs.reading.value !== "" && (
        <span class="toolbar-end dim" role="status" data-testid="reading-cards">
          {runs.reading.value}
        </span>
      )}
      {waiting > 0 && !isIndexed && (
        <span class="toolbar-end dim" role="status">
          {rows.length - waiting - failed} of {rows.length} read
        </span>
      )}
    </div>
  );
}

type OutliersProperties = OverviewProperties & { outliers: readonly FindingRow[] };

function Outliers({ outliers: all, runs, ranks, navigation, steps }: OutliersProperties) {
  const list = ranks.list.value;
  const run = runs.run.value;
  const outliers = useMemo(() => {
    if (!list || !run || list.isWhole) return all;
    const shown = new Set(list.order);
    const keys = new Map(run.files.map((file) => [file.path, ranks.keyOf({ file, part: 0 })]));
    return all.filter(({ record }) => shown.has(keys.get(record.path) ?? -1));
  }, [all, list, run, ranks]);
  if (outliers.length === 0) return null;
  return (
    <ul class="outliers" aria-label="Differences between ranks">
      {outliers.slice(0, MAX_OUTLIERS).map((finding) => {
        const { id, path, severity, title, text, action } = finding.record;
        return (
          <li key={id + path}>
            <button
              type="button"
              class="finding-line"
              data-severity={severity}
              title={action}
              onClick={() => void steps.openFinding(finding)}
            >
              <span class="finding-name">{title}</span> <span class="dim">{text}</span>
            </button>
          </li>
        );
      })}
      {outliers.length > MAX_OUTLIERS && (
        <li>
          <button type="button" class="link" onClick={() => navigation.open("summary")}>
            Show the others
          </button>
        </li>
      )}
    </ul>
  );
}

/** The rows of the rail that have no card, if all cards are shown. */
function useOthers({ runs, ranks }: OverviewProperties, known: readonly number[]): Row[] {
  const rows = runs.rows.value;
  if (ranks.list.value?.isWhole === false) return [];
  if (known.length >= rows.length) return [];
  const keys = new Set(known);
  return rows.filter((row) => !keys.has(ranks.keyOf(row)));
}

/** Whether a row is the first of its folder, in the order by rank. */
function isNewGroup(ranks: Ranks, before: number | undefined, key: number): boolean {
  const { sort, descending } = ranks.sort.value;
  if (sort !== "rank" || descending) return false;
  const group = (of: number) => ranks.rowOf(of)?.row.file.planned.group;
  return before === undefined || group(before) !== group(key);
}

const FILTER_TITLE =
  "Ranks (0-63 or 3,8), peaks (>40GiB), oom, outlier, finding, cluster:2, or a part of the path";

/** Typing filters at once. */
function Filter({ viewSelection }: ViewUses<"viewSelection">) {
  return (
    <label class="field rank-filter" title={FILTER_TITLE}>
      <span class="visually-hidden">Filter ranks</span>
      <input
        type="search"
        placeholder="Filter: 0-63 >40GiB outlier"
        data-testid="rank-filter"
        value={viewSelection.rankFilter.value}
        onInput={(event) => {
          viewSelection.rankFilter.value = event.currentTarget.value;
        }}
      />
    </label>
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
      <button type="button" class="sort" onClick={() => ranks.sortBy(sort)}>
        {text}
      </button>
    </th>
  );
}

type CategoriesProperties = ViewUses<"appearance" | "filters" | "groups" | "ranks"> & {
  /** The key of the row whose categories are shown. */
  of: number;
};

/** The colors of the bars. A category chooses its blocks, in all views. */
function Categories({ appearance, filters, groups, ranks, of }: CategoriesProperties) {
  const [shown, card] = [ranks.shownOf(of), ranks.rowOf(of)?.card];
  if (!shown || !card) return null;
  return (
    <ul class="legend" aria-label="Categories">
      {card.categories.map(({ category }, index) => {
        const bar = shown.categories[index];
        if (!bar) return null;
        const { label, color } = bar;
        const term = CATEGORY + category;
        return (
          <li key={category}>
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
