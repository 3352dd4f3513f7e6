// The flame graph of call stacks: at the peak, at the cursor or over a range.

import { effect, type Signal, signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { resource, stopAll } from "../../client/resource.js";
import type { FlameBox, FlameSpec, FlameStep } from "../../generated/protocol.js";
import { Toggle } from "../../views/controls.js";
import { PictureButtons } from "../../views/picture-buttons.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { Code } from "./code.js";
import { FlameArea, MIN_NAME_WIDTH } from "./flame-area.js";
import { Path } from "./flame-path.js";
import { FlamePlot } from "./flame-plot.js";
import { WEIGHTS } from "./flame-weights.js";

/** A narrower view opens without the table, in CSS pixels. */
const TABLE_WIDTH = 900;

type FlameOwners = ViewUses<
  "selection" | "viewSelection" | "filters" | "groups" | "navigation" | "plots" | "status"
>;

/** Queries of the flame graph and moves through it. */
function open({
  selection,
  viewSelection,
  filters,
  groups,
  navigation,
  plots,
  status,
}: FlameOwners) {
  const plot = plots.flame;
  const choice = viewSelection.flame;
  const spec = (): FlameSpec => {
    const { weight, inverted, root, ranged } = choice.value;
    const hideFramework = viewSelection.hideFramework.value;
    const event = weight === "cursor" ? (viewSelection.cursor.value ?? -1) : -1;
    const range = ranged && weight !== "cursor" ? viewSelection.range.value : null;
    const search = filters.text.value;
    return { weight, event, range, inverted, hideFramework, root, search };
  };
  /** The spec of the newest query. */
  const latest: Signal<FlameSpec | null> = signal(null);
  const info = resource(selection, "flame", () => {
    const flame = spec();
    latest.value = flame;
    return { flame: { flame } };
  });
  const boxes = resource(selection, "flameBoxes", () => {
    const range = plot.value?.range.value;
    const width = plot.value?.labels.value?.plot.width ?? 0;
    const graph = info.value.value;
    if (!range || !graph || width === 0) return null;
    const least = ((range.x1 - range.x0) / width) * MIN_NAME_WIDTH;
    return { flameBoxes: { flame: spec(), x0: range.x0, x1: range.x1, least } };
  });
  const stop = [
    () => info.stop(),
    () => boxes.stop(),
    effect(() => {
      const graph = info.value.value;
      const from = selection.target;
      const flame = latest.peek();
      plot.value?.show(graph && from && flame ? { ...from, flame, info: graph } : null);
    }),
  ];
  const go = (root: string) => {
    choice.value = { ...choice.peek(), root };
  };
  /** Chooses the blocks of a node: the filters follow the zoom. */
  const select = (terms: readonly string[]) => {
    if (terms.length === 0) filters.clear();
    else if (!groups.isChosen(terms)) groups.choose(terms);
  };
  /** Goes to a step of the breadcrumb. */
  const to = ({ path, terms }: FlameStep) => {
    select(terms);
    go(path);
  };
  /** Zooms to a node and chooses its blocks. */
  const zoom = async (node: number) => {
    const [from, flame] = [selection.target, latest.peek()];
    if (!from || !flame) return;
    const found = await from.client.view(from.target, "flameNode", { flameNode: { flame, node } });
    if (!found) return;
    select(found.terms);
    status.announce(`${found.title}, ${found.total.text}, ${found.text}`);
    go(found.path);
    // The names are replaced, so the canvas takes the keyboard focus.
    plot.peek()?.canvas.focus({ preventScroll: true });
  };
  const up = () => {
    const above = info.value.peek()?.path.at(-2);
    if (above) to(above);
    else go("");
  };
  /** Lists the blocks that weigh in the chosen node. */
  const openBlocks = () => {
    const { weight, event, range } = spec();
    if (weight === "peak" && range === null) filters.add("live@peak");
    if (weight === "cursor") filters.add(event < 0 ? "live@start" : `live@#${event}`);
    navigation.openSheet("blocks");
  };
  return { plot, info, boxes, zoom, up, to, openBlocks, stop: () => stopAll(stop) };
}

const NO_BOXES: readonly FlameBox[] = [];

type FlameProperties = FlameOwners & ViewUses<"appearance"> & ViewProperties;

export function Flame({ appearance, shown, ...owners }: FlameProperties) {
  const { selection, viewSelection, plots } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.stop(), [state]);
  const { plot, info, boxes, zoom, up, to, openBlocks } = state;
  const root = useRef<HTMLDivElement>(null);
  const table = useSignal(false);
  // The table is open where both have room.
  useLayoutEffect(() => {
    table.value = (root.current?.clientWidth ?? 0) >= TABLE_WIDTH;
  }, [table]);
  const graph = info.value.value;
  const choice = viewSelection.flame.value;
  const set = (change: Partial<typeof choice>) => {
    viewSelection.flame.value = { ...choice, root: "", ...change };
  };
  const pressed = (label: string, title: string, on: boolean, change: Partial<typeof choice>) => (
    <button
      type="button"
      class="toggle"
      aria-pressed={on}
      title={title}
      onClick={() => set(change)}
    >
      {label}
    </button>
  );
  return (
    <div class="flame" ref={root}>
      <div class="toolbar">
        <fieldset class="segmented small">
          <legend class="visually-hidden">Weight by</legend>
          {WEIGHTS.map(({ weight, label, title }) => (
            <button
              key={weight}
              type="button"
              aria-pressed={choice.weight === weight}
              title={title}
              onClick={() => set({ weight })}
            >
              {label}
            </button>
          ))}
        </fieldset>
        {viewSelection.range.value &&
          choice.weight !== "cursor" &&
          pressed("in the range", "Only allocations in the marked range", choice.ranged, {
            ranged: !choice.ranged,
          })}
        {pressed("leaf first", "Innermost frame at the top (V)", choice.inverted, {
          inverted: !choice.inverted,
        })}
        <Toggle
          label="hide framework"
          title="Hide frames of PyTorch, Python and C++ (H)"
          value={viewSelection.hideFramework}
          changed={() => set({})}
        />
        <Toggle
          label="table"
          title="Modules, files and lines with their memory, callers and callees"
          value={table}
        />
        {graph?.matched && (
          <span
            class="matched"
            data-testid="flame-matched"
            data-value={graph.matched.raw}
            title={graph.matched.exact}
          >
            found {graph.matched.text}
            <span class="dim">, widths are of all blocks</span>
          </span>
        )}
        <span class="toolbar-end">
          {(graph?.path.length ?? 0) > 1 && (
            <button type="button" class="button plain" onClick={openBlocks}>
              Blocks of this node
            </button>
          )}
          <PictureButtons
            selection={selection}
            appearance={appearance}
            plot={plot.value}
            name="flame"
          />
        </span>
      </div>
      <nav class="breadcrumb" aria-label="Path">
        <Path steps={graph?.path ?? []} to={to} />
        <span
          class="dim"
          data-testid="flame-total"
          data-value={graph?.total.raw}
          title={graph?.total.exact}
        >
          {graph && `${graph.total.text}: ${graph.text}`}
        </span>
      </nav>
      <div class="flame-body" data-table={table.value}>
        <FlameArea
          plots={plots}
          appearance={appearance}
          plot={plot}
          label={graph?.text ?? "Flame graph"}
          what="The flame graph"
          testid="flame-canvas"
          boxes={boxes.value.value ?? NO_BOXES}
          rows={graph?.rows ?? 0}
          zoom={(node) => void zoom(node)}
          up={up}
          make={(surface, events) => new FlamePlot(surface, events, plots.gestureOptions)}
        >
          {graph && graph.total.raw === "0" && <p class="plot-state">No allocations here.</p>}
        </FlameArea>
        {table.value && shown && <Code {...owners} appearance={appearance} />}
      </div>
    </div>
  );
}
