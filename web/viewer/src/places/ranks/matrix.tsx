// The matrix: call sites by ranks. A cell's color is its difference from the median of its row, and
// like ranks are side by side, so that stages of a pipeline and ranks that hold more stand out.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Matrix, MatrixCell } from "../../generated/protocol.js";
import { failureOf } from "../../run.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { MatrixHead, MatrixRows } from "./matrix-head.js";
import { MatrixLegend } from "./matrix-legend.js";
import { cellAt, colorsOf, drawMatrix, ROW } from "./matrix-picture.js";

type MatrixOwners = ViewUses<
  | "runs"
  | "selection"
  | "viewSelection"
  | "navigation"
  | "appearance"
  | "groups"
  | "ranks"
  | "comparing"
  | "status"
>;

export function RankMatrix({ shown, ...owners }: MatrixOwners & ViewProperties) {
  const { runs, selection, viewSelection, ranks, status } = owners;
  const [matrix, setMatrix] = useState<Matrix | null>(null);
  const [asked, setAsked] = useState(false);
  const overview = ranks.overview.value;
  const focus = selection.focus.value;
  const key = focus ? ranks.keyOf(focus) : null;
  const byStep = viewSelection.bySteps.value;
  const iteration = ranks.list.value?.iteration;
  // A new card changes the overview, and the matrix with it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the coordinator knows the iteration
  useEffect(() => {
    if (!shown || overview === null) return undefined;
    let isCurrent = true;
    const show = async () => {
      const answer = await runs.coordinator.matrix({ show: { key, byStep } });
      if (!isCurrent || !("matrix" in answer)) return;
      setMatrix(answer.matrix);
      setAsked(true);
    };
    show().catch((error: unknown) => status.report(failureOf(error)));
    return () => {
      isCurrent = false;
    };
  }, [shown, overview, key, byStep, iteration, runs, status]);
  if (matrix) return <Filled {...owners} matrix={matrix} />;
  if (!asked && runs.hasRanks.value)
    return (
      <p class="quiet" aria-busy="true">
        Reading
      </p>
    );
  return (
    <div class="quiet">
      <h3>Ranks side by side</h3>
      <p>
        The matrix compares the ranks of a run: files of one folder with ranks in their names. Drop
        the folder of a run, or add the snapshot of another rank.
      </p>
    </div>
  );
}

interface Place {
  row: number;
  column: number;
}

/** A cell with its texts, once they have come. */
interface Tip extends Place {
  cell: MatrixCell | null;
  /** Whether the keyboard is there. */
  keys: boolean;
}

const STEPS: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};

function Filled({ matrix, ...owners }: MatrixOwners & { matrix: Matrix }) {
  const { runs, viewSelection, navigation, appearance, groups, ranks, comparing } = owners;
  const [width, setWidth] = useState(0);
  const [tip, setTip] = useState<Tip | null>(null);
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = appearance.dark.value;
  useLayoutEffect(() => {
    const element = area.current;
    if (!element) return undefined;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colors are those of the theme
  useLayoutEffect(() => {
    if (canvas.current && width > 0)
      drawMatrix(canvas.current, matrix, width, colorsOf(canvas.current));
  }, [matrix, width, dark]);
  const cursor = useMemo(
    () => placeOf(matrix, viewSelection.cell.value),
    [matrix, viewSelection.cell.value],
  );
  const latest = useRef<Tip | null>(null);
  const point = async (place: Place | null, keys: boolean) => {
    const now = latest.current;
    if (place?.row === now?.row && place?.column === now?.column && keys === now?.keys) return;
    const next = place && { ...place, keys, cell: null };
    latest.current = next;
    if (next === null) {
      setTip(null);
      return;
    }
    const { row, column } = next;
    const answer = await runs.coordinator.matrix({ cell: { row, column } });
    if (latest.current !== next || !("cell" in answer)) return;
    setTip({ ...next, cell: answer.cell });
    if (keys && answer.cell) owners.status.announce(wordsOf(answer.cell));
  };
  const move = (place: Place) => {
    const [row, column] = [matrix.rows[place.row], matrix.columns[place.column]];
    if (!row || !column) return;
    viewSelection.cell.value = { rank: column.label, site: row.site };
    void point(place, true);
  };
  const open = ({ column }: Place) => {
    const of = matrix.columns[column];
    const rank = of && ranks.rowOf(of.key)?.row;
    const usual = of && ranks.rowOf(of.usual)?.row;
    if (rank && runs.run.peek()?.isIndexed) owners.selection.look(rank);
    if (!rank || !usual || runs.run.peek()?.isIndexed) return;
    comparing.choose(usual);
    comparing.chooseOther(rank);
    navigation.open("compare");
  };
  const keydown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const first = cursor ?? firstOf(matrix);
    const by = STEPS[event.key];
    const ends: Record<string, number> = { Home: 0, End: matrix.columns.length - 1 };
    const end = ends[event.key];
    if (event.key === "Enter") open(first);
    else if (by && cursor === null) move(first);
    else if (by) {
      const clamp = (value: number, most: number) => Math.max(0, Math.min(most - 1, value));
      move({
        row: clamp(first.row + by[0], matrix.rows.length),
        column: clamp(first.column + by[1], matrix.columns.length),
      });
    } else if (end !== undefined) move({ ...first, column: end });
    else return;
    event.preventDefault();
  };
  const at = (event: MouseEvent) => {
    const { left, top } = canvas.current?.getBoundingClientRect() ?? { left: 0, top: 0 };
    return cellAt(matrix, { x: event.clientX - left, y: event.clientY - top, width });
  };
  const box = ({ row, column }: Place) => ({
    left: `${(column / matrix.columns.length) * 100}%`,
    width: `${100 / matrix.columns.length}%`,
    top: `${row * ROW}px`,
    height: `${ROW - 1}px`,
  });
  return (
    <div class="matrix">
      <div class="toolbar">
        <span data-testid="matrix-text">{matrix.text[0]}</span>
        {matrix.hasSteps && <MatrixRows viewSelection={viewSelection} matrix={matrix} />}
        <MatrixLegend matrix={matrix} dark={dark} />
      </div>
      {matrix.text.length > 1 && (
        <ul class="matrix-outliers" data-testid="matrix-outliers" aria-label="Outliers">
          {matrix.text.slice(1).map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
      <div class="matrix-scroll">
        <div class="matrix-grid">
          <MatrixHead matrix={matrix} width={width} column={cursor?.column ?? null} />
          <ul class="matrix-rows" aria-label={matrix.byStep ? "Steps" : "Call sites"}>
            {matrix.rows.map(({ site, term, median, max }, row) => (
              <li key={site} data-testid="matrix-row" data-chosen={groups.isChosen([term])}>
                {term === "" ? (
                  <span class="matrix-site" title={site}>
                    {site}
                  </span>
                ) : (
                  <button
                    type="button"
                    class="matrix-site"
                    title={`${site}\nClick to choose its blocks in all views`}
                    aria-pressed={groups.isChosen([term])}
                    onClick={(event) => groups.choose([term], event)}
                  >
                    {site}
                  </button>
                )}
                <span
                  data-column="median"
                  data-value={median.raw}
                  data-at={row === cursor?.row}
                  title={`median, ${median.exact}`}
                >
                  {median.text}
                </span>
                <span data-column="max" data-value={max.raw} title={`the most, ${max.exact}`}>
                  {max.text}
                </span>
              </li>
            ))}
          </ul>
          <div
            class="matrix-cells"
            ref={area}
            role="application"
            aria-roledescription="matrix of ranks"
            aria-label={matrix.text.join(" ")}
          >
            <canvas
              ref={canvas}
              data-testid="matrix"
              tabIndex={0}
              role="img"
              aria-label="Cells: arrow keys move, Enter compares with the usual rank"
              aria-describedby="matrix-cell"
              style={{ height: `${matrix.rows.length * ROW}px` }}
              onKeyDown={keydown}
              onFocus={(event) => {
                if (event.currentTarget.matches(":focus-visible") && cursor)
                  void point(cursor, true);
              }}
              onBlur={() => void point(null, false)}
              onPointerMove={(event) => void point(at(event), false)}
              onPointerLeave={() => void point(null, false)}
              onClick={(event) => {
                const place = at(event);
                if (place) open(place);
              }}
            />
            <p id="matrix-cell" class="visually-hidden">
              {tip?.cell ? wordsOf(tip.cell) : ""}
            </p>
            {matrix.clusters.slice(1).map(({ first }) => (
              <i
                key={first}
                class="matrix-edge"
                style={{ left: `${(first / matrix.columns.length) * 100}%` }}
              />
            ))}
            {cursor && <i class="matrix-cursor" style={box(cursor)} />}
            {tip && !tip.keys && <i class="matrix-hover" style={box(tip)} />}
            {tip?.cell && <CellTip tip={tip} cell={tip.cell} columns={matrix.columns.length} />}
          </div>
        </div>
        {matrix.omitted !== "" && <p class="matrix-omitted dim">{matrix.omitted}</p>}
      </div>
    </div>
  );
}

function CellTip({ tip, cell, columns }: { tip: Tip; cell: MatrixCell; columns: number }) {
  const element = useRef<HTMLDivElement>(null);
  // Below the cell; on the other side where there is no room.
  useLayoutEffect(() => {
    const own = element.current;
    const room = own?.parentElement;
    const view = own?.closest(".matrix-scroll");
    if (!own || !room || !view) return;
    const place = ((tip.column + 0.5) / columns) * room.clientWidth + 8;
    const x = Math.min(place, room.clientWidth - own.offsetWidth - 2);
    const below = (tip.row + 1) * ROW + 6;
    const end = view.getBoundingClientRect().bottom - room.getBoundingClientRect().top;
    const y = below + own.offsetHeight > end ? tip.row * ROW - own.offsetHeight - 6 : below;
    own.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  });
  return (
    <div class="tooltip" role="tooltip" data-testid="matrix-tip" ref={element}>
      <p class="tooltip-title">
        <span data-value={cell.bytes.raw} data-change={cell.change.raw} title={cell.bytes.exact}>
          {cell.title}
        </span>
      </p>
      <p>{cell.site}</p>
      {cell.lines.map((line) => (
        <p class="dim" key={line}>
          {line}
        </p>
      ))}
    </div>
  );
}

const wordsOf = ({ title, site, lines }: MatrixCell) => [title, site, ...lines].join(", ");

/** The cell that a link or the keyboard names; null if the matrix does not have it. */
function placeOf(matrix: Matrix, cell: { rank: string; site: string } | null): Place | null {
  if (cell === null) return null;
  const row = matrix.rows.findIndex(({ site }) => site === cell.site);
  const column = matrix.columns.findIndex(({ label }) => label === cell.rank);
  return row < 0 || column < 0 ? null : { row, column };
}

/** Where the cursor begins: at the first rank that differs from its cluster. */
function firstOf({ columns }: Matrix): Place {
  return {
    row: 0,
    column: Math.max(
      0,
      columns.findIndex(({ outlier }) => outlier !== ""),
    ),
  };
}
