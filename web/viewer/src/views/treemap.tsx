// A treemap of the live set: categories, and in them call sites with the edges of their blocks.
// Beside it the same as a table.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { PeakLens, TreemapCell } from "../generated/protocol.js";
import { NameButton } from "./name-button.js";
import type { ViewUses } from "./workspace.js";

export interface Size {
  width: number;
  height: number;
}

type TreemapProperties = ViewUses<"filters" | "appearance" | "groups"> & {
  lens: PeakLens | null;
  measured: (size: Size) => void;
  /** The moment that it shows. */
  heading?: string;
  /** What stands at the end of its heading. */
  action?: ComponentChildren;
};

/** Sizes are rounded, so that a small change asks for no other layout. */
const GRID = 8;
/** The room of a name, of a second line with its bytes, and of a letter, in CSS pixels. */
const ROOM = { width: 36, height: 15, second: 29, letter: 6.8, padding: 8 };

type Tip = { cell: TreemapCell; x: number; y: number } | null;

export function Treemap(owners: TreemapProperties) {
  const { lens, measured, heading = "Live at the peak" } = owners;
  const [isTable, setTable] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the callback is the same each time
  useLayoutEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.contentRect ?? {};
      const down = (side: number) => Math.floor(side / GRID) * GRID;
      if (width > 0 && height > 0) measured({ width: down(width), height: down(height) });
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return (
    <section class="peak-live" aria-label="Live blocks at the peak">
      <p class="peak-live-head">
        <b>{heading}, by category and line</b>
        <span class="segmented small">
          {(["map", "table"] as const).map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={isTable === (name === "table")}
              onClick={() => setTable(name === "table")}
            >
              {name}
            </button>
          ))}
        </span>
        {owners.action}
      </p>
      <div class="treemap-box" ref={box}>
        {lens &&
          (isTable ? <AsTable {...owners} lens={lens} /> : <Cells {...owners} lens={lens} />)}
      </div>
    </section>
  );
}

type CellsProperties = TreemapProperties & { lens: PeakLens };

function Cells({ lens, filters, appearance, groups }: CellsProperties) {
  const [at, setAt] = useState(1);
  const [tip, setTip] = useState<Tip>(null);
  const { cells } = lens;
  const map = useRef<HTMLDivElement>(null);
  const terms = filters.terms.value;
  const keydown = (event: KeyboardEvent) => {
    const next = neighbor(cells, at, event.key);
    if (next === null || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    setAt(next);
    map.current?.querySelector<HTMLElement>(`[data-index="${next}"]`)?.focus();
  };
  const reachable = Math.min(at, cells.length - 1);
  return (
    <>
      <div
        class="treemap"
        role="toolbar"
        aria-label="Treemap: arrow keys move between call sites, Enter chooses one"
        data-testid="treemap"
        ref={map}
        onKeyDown={keydown}
        onPointerLeave={() => setTip(null)}
      >
        {cells.map((cell, index) => (
          <Cell
            key={`${cell.depth} ${cell.color} ${cell.label}`}
            cell={cell}
            index={index}
            heading={headingOf(cells, index)}
            isReachable={index === reachable}
            isChosen={groups.isChosen(cell.terms)}
            isLit={isLit(cell, terms)}
            color={appearance.swatch(cell.color)}
            ink={appearance.ink(cell.color)}
            focused={() => setAt(index)}
            pointed={(event) => setTip(tipAt(cell, event, map.current))}
            choose={(event) => groups.choose(cell.terms, event)}
          />
        ))}
      </div>
      {tip && <CellTip tip={tip} />}
    </>
  );
}

/** The height of a category's heading: what lies above its first call site. */
const headingOf = (cells: readonly TreemapCell[], index: number) =>
  Math.floor((cells[index + 1]?.y[0] ?? 0) - (cells[index]?.y[0] ?? 0));

interface CellProperties {
  cell: TreemapCell;
  index: number;
  heading: number;
  isReachable: boolean;
  isChosen: boolean;
  isLit: boolean;
  color: string | undefined;
  ink: string | undefined;
  focused: () => void;
  pointed: (event: PointerEvent) => void;
  choose: (event: MouseEvent) => void;
}

/** A call site, or the ground of a category and its heading, if there is room for one. */
function Cell(properties: CellProperties) {
  const { cell, index, heading, isReachable, isChosen, isLit: lit, color, ink } = properties;
  const [width, height] = [cell.x[1] - cell.x[0], cell.y[1] - cell.y[0]];
  const isSite = cell.depth === 1;
  const tall = isSite ? height : heading;
  const hasName = width >= ROOM.width && tall >= ROOM.height;
  const hasBytes = isSite
    ? height >= ROOM.second && widthOf(cell.bytes.text) <= width
    : widthOf(cell.label) + widthOf(cell.blocks.exact) <= width;
  const place = {
    left: `${cell.x[0]}px`,
    top: `${cell.y[0]}px`,
    width: `${width}px`,
    "--of": color,
    "--on": ink,
  };
  return (
    <>
      {!isSite && (
        <div
          class="treemap-ground"
          data-value={cell.bytes.raw}
          style={{ ...place, height: `${height}px` }}
        />
      )}
      {(isSite || hasName) && (
        <button
          type="button"
          class={isSite ? "treemap-site" : "treemap-category"}
          data-index={index}
          data-label={cell.label}
          data-value={cell.bytes.raw}
          data-blocks={cell.blocks.raw}
          data-quiet={isSite && !lit}
          aria-pressed={isChosen}
          aria-disabled={cell.terms.length === 0}
          aria-label={describe(cell)}
          tabIndex={isReachable ? 0 : -1}
          style={{ ...place, height: `${tall}px` }}
          onFocus={properties.focused}
          onPointerMove={properties.pointed}
          onClick={properties.choose}
        >
          {cell.edges !== "" && (
            <svg aria-hidden="true" width={width} height={height}>
              <path d={cell.edges} />
            </svg>
          )}
          {hasName && <span class="treemap-name">{cell.label}</span>}{" "}
          {hasName && hasBytes && (
            <span class="treemap-bytes">{isSite ? cell.bytes.text : cell.blocks.exact}</span>
          )}
        </button>
      )}
    </>
  );
}

/** The room that a text takes, at most. */
const widthOf = (text: string) => text.length * ROOM.letter + ROOM.padding;

/** Whether the filters choose the category and the call site of a cell, or say nothing of them. */
const isLit = (cell: TreemapCell, terms: readonly string[]) =>
  ["category:", "site:"].every((key) => {
    const chosen = terms.filter((term) => term.startsWith(key));
    return chosen.length === 0 || chosen.some((term) => cell.terms.includes(term));
  });

/** The words that are shown, then the others. */
const describe = ({ depth, label, bytes, percent, blocks }: TreemapCell) =>
  depth === 0
    ? `${label} ${blocks.exact}, ${bytes.text}, ${percent}`
    : `${label} ${bytes.text}, ${percent}, ${blocks.exact}`;

/** The tooltip's place, on the side of the pointer that has room. */
function tipAt(cell: TreemapCell, event: PointerEvent, map: HTMLElement | null): Tip {
  const box = map?.getBoundingClientRect();
  return box ? { cell, x: event.clientX - box.left, y: event.clientY - box.top } : null;
}

function CellTip({ tip: { cell, x, y } }: { tip: NonNullable<Tip> }) {
  return (
    <div
      class="tooltip treemap-tip"
      data-testid="treemap-tip"
      style={{ "--x": `${x}px`, "--y": `${y}px` }}
    >
      <div class="tooltip-title" data-value={cell.bytes.raw}>
        {cell.bytes.text} <span class="dim">{cell.percent}</span>
      </div>
      <div>{cell.label}</div>
      <div class="dim">{cell.blocks.exact}</div>
    </div>
  );
}

const DIRECTIONS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The nearest call site in the direction of an arrow key; null for other keys and at an edge. */
function neighbor(cells: readonly TreemapCell[], at: number, key: string): number | null {
  const direction = DIRECTIONS[key];
  const from = cells[at];
  if (!direction || !from) return null;
  const middle = ({ x, y }: TreemapCell) => [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2] as const;
  const [fromX, fromY] = middle(from);
  let found: number | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, cell] of cells.entries()) {
    // Small call sites that share a cell cannot be chosen.
    const [x, y] = middle(cell);
    const along = (x - fromX) * direction[0] + (y - fromY) * direction[1];
    const across = Math.abs((x - fromX) * direction[1]) + Math.abs((y - fromY) * direction[0]);
    if (cell.terms.length !== 2 || along <= 0.5) continue;
    const distance = along + 2 * across;
    if (distance < least) [least, found] = [distance, index];
  }
  return found;
}

function AsTable({ lens, ...owners }: CellsProperties) {
  const { groups } = owners;
  return (
    <div class="ab-table treemap-table" data-testid="treemap-table">
      <table aria-label="Live blocks by category and call site">
        <thead>
          <tr>
            <th scope="col">category, call site</th>
            <th scope="col">bytes</th>
            <th scope="col">%</th>
            <th scope="col">blocks</th>
          </tr>
        </thead>
        <tbody>
          {lens.cells.map((cell) => (
            <tr
              key={`${cell.depth} ${cell.color} ${cell.label}`}
              data-depth={cell.depth}
              aria-selected={groups.isChosen(cell.terms)}
            >
              <th scope="row">
                <NameButton {...owners} {...cell} title={cell.label} />
              </th>
              <td data-column="bytes" data-value={cell.bytes.raw} title={cell.bytes.exact}>
                {cell.bytes.text}
              </td>
              <td>{cell.percent}</td>
              <td data-column="blocks" data-value={cell.blocks.raw}>
                {cell.blocks.text}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
