// biome-ignore-all lint/a11y/useSemanticElements: virtualized rows are laid out by hand
// biome-ignore-all lint/a11y/useFocusableInteractive: the body takes the keys of all rows
// biome-ignore-all lint/a11y/noNoninteractiveTabindex: the body scrolls and takes the keys

// A virtualized table: only visible rows are requested and rendered. It is one stop of the Tab key,
// and arrow keys move the current row.

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Height of a row in CSS pixels. */
const ROW = 24;
/** Rows that are requested above and below the visible ones. */
const OVERSCAN = 30;
/** Browsers limit heights to about ten million pixels. Longer tables scale the scroll position. */
const MAX_PIXELS = 8_000_000;

/**
 * The properties of a column that sorts by `key`. A second click reverses the order; `descending`
 * is the first one.
 */
export function sortable<K>(
  sort: Signal<K>,
  isDescending: Signal<boolean>,
  key: K,
  descending: boolean,
) {
  const order = isDescending.value ? ("descending" as const) : ("ascending" as const);
  return {
    sort: () => {
      isDescending.value = sort.peek() === key ? !isDescending.peek() : descending;
      sort.value = key;
    },
    sorted: sort.value === key ? order : ("none" as const),
  };
}

export interface Column<R> {
  key: string;
  title: string;
  number?: boolean;
  width: string;
  /** Sorts by this column. */
  sort?: () => void;
  sorted?: "ascending" | "descending" | "none";
  cell: (row: R) => ComponentChildren;
  /** The full text for the tooltip, if the cell is not plain text. */
  words?: (row: R) => string;
  /** The exact value, for tests and tools. */
  raw?: (row: R) => string | number | null;
}

interface TableProperties<R> {
  label: string;
  testid: string;
  columns: readonly Column<R>[];
  total: number;
  from: number;
  rows: readonly R[];
  rowKey: (row: R) => number;
  /** Key of the selected row. */
  current: number | null;
  /** Index of a row to scroll to, when it changes. */
  reveal: number | null;
  ask: (from: number, count: number) => void;
  open: (row: R) => void;
  /** The table is a tree, whose rows arrow keys fold and unfold. */
  tree?: Tree<R>;
}

interface Tree<R> {
  depth: (row: R) => number;
  /** Whether the rows below are listed; null without any. */
  open: (row: R) => boolean | null;
  toggle: (row: R) => void;
}

export function Table<R>(properties: TableProperties<R>) {
  const { label, testid, columns, total, from, rows, rowKey, current, reveal, ask, open, tree } =
    properties;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const full = total * ROW;
  const pixels = Math.min(full, MAX_PIXELS);
  const scale = full > pixels ? (full - height) / Math.max(1, pixels - height) : 1;
  const first = Math.max(0, Math.min(total - 1, Math.floor((top * scale) / ROW)));
  const count = Math.ceil(height / ROW) + 1;

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const size = new ResizeObserver(() => setHeight(element.clientHeight));
    size.observe(element);
    return () => size.disconnect();
  }, []);
  useEffect(() => {
    ask(Math.max(0, first - OVERSCAN), count + 2 * OVERSCAN);
  }, [first, count, ask]);
  useEffect(() => {
    const element = box.current;
    if (reveal === null || !element) return;
    const at = (reveal * ROW) / scale;
    if (at < element.scrollTop || at > element.scrollTop + element.clientHeight - 2 * ROW) {
      element.scrollTop = at - element.clientHeight / 3;
    }
  }, [reveal, scale]);

  const at = rows.findIndex((row) => rowKey(row) === current);
  /** Folds the current row or goes to the one around it, or unfolds it. Whether it did. */
  const fold = (key: string): boolean => {
    const row = rows[at];
    if (!tree || !row || (key !== "ArrowLeft" && key !== "ArrowRight")) return false;
    if (tree.open(row) === (key === "ArrowLeft")) tree.toggle(row);
    else if (key === "ArrowLeft") {
      const depth = tree.depth(row);
      const around = rows.slice(0, at).findLast((other) => tree.depth(other) < depth);
      if (around) open(around);
    }
    return true;
  };
  const keydown = (event: KeyboardEvent) => {
    if (fold(event.key)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: count - 2, PageUp: 2 - count }[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
      return;
    event.preventDefault();
    event.stopPropagation();
    const target = at < 0 ? first : from + at + by;
    const row = rows[Math.max(0, Math.min(total - 1, target)) - from];
    if (!row) return;
    open(row);
    const element = box.current;
    const y = (target * ROW) / scale;
    if (
      element &&
      (y < element.scrollTop || y > element.scrollTop + element.clientHeight - 2 * ROW)
    ) {
      element.scrollTop = y - element.clientHeight / 2;
    }
  };
  const template = columns.map(({ width }) => width).join(" ");
  const shift = scale === 1 ? from * ROW : top - (top * scale - from * ROW);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have a name
    <div
      class="table"
      role={tree ? "treegrid" : "grid"}
      aria-label={label}
      aria-rowcount={total + 1}
      aria-colcount={columns.length}
      data-testid={testid}
      data-total={total}
      style={{ "--columns": template }}
    >
      <div class="table-head" role="row" aria-rowindex={1}>
        {columns.map(({ key, title, number, sort, sorted }) => (
          <div key={key} role="columnheader" data-number={number} aria-sort={sorted}>
            {sort ? (
              <button type="button" class="sort" onClick={sort}>
                {title}
              </button>
            ) : (
              title
            )}
          </div>
        ))}
      </div>
      <div
        class="table-body"
        ref={box}
        role="rowgroup"
        tabIndex={0}
        aria-label={label}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={keydown}
      >
        <div role="presentation" style={{ height: `${pixels}px` }}>
          <div
            role="presentation"
            class="table-rows"
            style={{ transform: `translateY(${shift}px)` }}
          >
            {rows.map((row, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the body takes the keys of all rows
              <div
                key={rowKey(row)}
                role="row"
                class="table-row"
                aria-rowindex={from + index + 2}
                aria-selected={rowKey(row) === current}
                aria-level={tree && tree.depth(row) + 1}
                aria-expanded={tree?.open(row) ?? undefined}
                data-key={rowKey(row)}
                onClick={() => open(row)}
              >
                {columns.map((column) => (
                  <Cell key={column.key} column={column} row={row} />
                ))}
              </div>
            ))}
          </div>
        </div>
      </div>
    </div>
  );
}

function Cell<R>({ column, row }: { column: Column<R>; row: R }) {
  const { key, number, cell, words, raw } = column;
  const shown = cell(row);
  const title = words?.(row) ?? (typeof shown === "string" ? shown : undefined);
  return (
    <div
      role="gridcell"
      data-number={number}
      data-column={key}
      data-value={raw?.(row)}
      title={title}
    >
      {shown}
    </div>
  );
}
