// The overview of all ranks: peak by category, reserved and final memory, findings, usage over
// time.

import type { OverviewRow, RankCard, RankSort } from "../generated/protocol.js";
import { SPARK } from "../generated/protocol.js";
import type { Row } from "../run.js";
import { LoadAgain } from "../ui/messages.js";
import { CategoryBars } from "./category-bars.js";
import type { ViewUses } from "./workspace.js";

const BARS = "peak by category (gray: reserved)";

const RANK: readonly [RankSort, string] = ["rank", "rank"];
const COLUMNS: readonly (readonly [RankSort, string])[] = [
  ["peak", "peak"],
  ["reserved", "reserved"],
  ["end", "end"],
  ["findings", "findings"],
];

type OverviewProperties = ViewUses<
  "runs" | "selection" | "navigation" | "appearance" | "ranks" | "steps"
>;

export function Overview(owners: OverviewProperties) {
  const { runs, selection, appearance, ranks, steps } = owners;
  const overview = ranks.overview.value;
  const rows = runs.rows.value;
  const waiting = rows.filter(
    ({ file }) => file.cards.value === null && file.load.value.state !== "error",
  ).length;
  const failed = rows.filter(({ file }) => file.load.value.state === "error");
  const first = overview?.rows[0] && ranks.rowOf(overview.rows[0].key);
  return (
    <div class="overview">
      <div class="toolbar">
        <span class="dim" data-testid="overview-text">
          {overview?.text}
        </span>
        {first && <Categories appearance={appearance} card={first.card} />}
        {waiting > 0 && (
          <span class="toolbar-end dim" role="status">
            {rows.length - waiting - failed.length} of {rows.length} read
          </span>
        )}
      </div>
      {overview && overview.outliers.length > 0 && (
        <ul class="outliers" aria-label="Differences between ranks">
          {overview.outliers.map((finding) => (
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
        </ul>
      )}
      <div class="grid-scroll">
        <table class="grid ranks">
          <thead>
            <tr>
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
          <tbody>
            {(overview?.rows ?? []).map((row) => {
              const entry = ranks.rowOf(row.key);
              return entry && <Rank key={row.key} {...owners} shown={row} {...entry} />;
            })}
            {rows
              .filter(({ file, part }) => !file.cards.value?.[part])
              .map((row) => (
                <Pending
                  key={`${row.file.planned.file}/${row.part}`}
                  runs={runs}
                  selection={selection}
                  row={row}
                />
              ))}
          </tbody>
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

function Categories({ appearance, card }: ViewUses<"appearance"> & { card: RankCard }) {
  return (
    <ul class="legend" aria-label="Categories">
      {card.categories.map(({ name, label, color }) => (
        <li key={name}>
          <span class="swatch" style={{ background: appearance.swatch(color) }} /> {label}
        </li>
      ))}
    </ul>
  );
}

type RankProperties = ViewUses<"selection" | "navigation" | "appearance"> & {
  shown: OverviewRow;
  row: Row;
  card: RankCard;
};

function Rank({ selection, navigation, appearance, shown, row, card }: RankProperties) {
  const load = row.file.load.value;
  const [requested, , , reserved] = card.bands;
  const look = () => selection.look(row);
  const open = () => {
    look();
    navigation.open("timeline");
  };
  return (
    <tr
      class="rank-line"
      data-testid="overview-row"
      data-path={card.path}
      data-outlier={shown.outlier !== ""}
      aria-selected={selection.isFocused(row)}
      onClick={look}
      onDblClick={open}
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
          <CategoryBars appearance={appearance} shown={shown} card={card} labeled />
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
      <td class="num" data-value={card.findings.length} data-column="findings">
        {card.ooms.raw !== "0" && (
          <span class="badge" data-severity="high" title={`${card.ooms.exact}`}>
            OOM
          </span>
        )}
        {card.findings.length > 0 && (
          <span title={card.findings.map(({ title }) => title).join("\n")}>
            {card.findings.length}
          </span>
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

/** A rank that is being read, or could not be read. */
function Pending({ runs, selection, row }: ViewUses<"runs" | "selection"> & { row: Row }) {
  const load = row.file.load.value;
  const progress = row.file.progress.value;
  return (
    <tr class="rank-line" data-state={load.state} onClick={() => selection.look(row)}>
      <th scope="row">{row.label}</th>
      <td class="dim" colSpan={6}>
        {load.state === "error" ? (
          <>
            <span class="error">{load.failure.message}</span>
            {load.again && <LoadAgain runs={runs} file={row.file} class="link" />}
          </>
        ) : (
          (progress?.text ??
          STATES[load.state === "ready" && row.file.cards.value ? "empty" : load.state])
        )}
      </td>
    </tr>
  );
}
