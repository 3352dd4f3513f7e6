// The flame graph: what call stacks add up to, at the peak, at the cursor or over a range.

import { effect, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import {
  type FlameBox,
  type FlameSpec,
  type FlameWeight,
  ROW_UNITS,
} from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Canvas } from "../ui/canvas.js";
import { RowsBar } from "../ui/rows-bar.js";
import { Tooltip } from "../ui/tooltip.js";
import { NoPicture } from "../ui/words.js";
import { Toggle } from "./controls.js";
import { FlamePlot } from "./flame-plot.js";
import { type Box, Overlay, placed } from "./overlay.js";
import { PictureButtons } from "./picture-buttons.js";
import { endAll, resource } from "./resource.js";
import type { ViewProperties } from "./ui.js";
import type { Workspace } from "./workspace.js";

const WEIGHTS: readonly (readonly [FlameWeight, string, string])[] = [
  ["peak", "at peak", "Requested bytes that are live at the peak"],
  ["cursor", "at cursor", "Requested bytes that are live at the time cursor"],
  ["byteSeconds", "bytes × time", "Requested bytes times how long they were live"],
  ["count", "allocations", "How many allocations"],
  ["churn", "churn", "Bytes of all allocations, however short they lived"],
];

/** A name needs so many pixels; narrower nodes have none. */
const NAME = 28;

function open(session: Session, workspace: Workspace) {
  const plot = workspace.flame;
  const { linked } = session;
  const spec = (): FlameSpec => {
    const { weight, inverted, root, ranged } = linked.flame.value;
    const hideFramework = linked.hideFramework.value;
    const event = weight === "cursor" ? (linked.cursor.value ?? -1) : -1;
    const range = ranged && weight !== "cursor" ? linked.range.value : null;
    return { weight, event, range, inverted, hideFramework, root, search: linked.search.value };
  };
  const asked: Signal<FlameSpec | null> = signal(null);
  const info = resource(session, "flame", () => {
    const flame = spec();
    asked.value = flame;
    return { flame: { flame } };
  });
  const boxes = resource(session, "flameBoxes", () => {
    const range = plot.value?.range.value;
    const width = plot.value?.labels.value?.plot.width ?? 0;
    const graph = info.value.value;
    if (!range || !graph || width === 0) return null;
    const least = ((range.x1 - range.x0) / width) * NAME;
    return { flameBoxes: { flame: spec(), x0: range.x0, x1: range.x1, least } };
  });
  const stop = [
    () => info.stop(),
    () => boxes.stop(),
    effect(() => {
      const graph = info.value.value;
      const from = session.asked;
      const flame = asked.peek();
      plot.value?.show(graph && from && flame ? { ...from, flame, info: graph } : null);
    }),
  ];
  const go = (root: string) => {
    linked.flame.value = { ...linked.flame.peek(), root };
  };
  /** Zooms to a node, and lets the table of blocks show what is behind it. */
  const zoom = async (node: number) => {
    const [from, flame] = [session.asked, asked.peek()];
    if (!from || !flame) return;
    const found = await from.client.view(from.target, "flameNode", { flameNode: { flame, node } });
    if (!found) return;
    linked.node.value = found.path === "" ? null : { flame, node, title: found.title };
    session.spoken.value = `${found.title}, ${found.total.text}, ${found.text}`;
    go(found.path);
    // The names are made anew: the keys that go on from here are the canvas's.
    plot.peek()?.canvas.focus({ preventScroll: true });
  };
  const up = () => {
    const path = info.value.peek()?.path ?? [];
    linked.node.value = null;
    go(path.at(-2)?.path ?? "");
  };
  const blocksBelow = () => {
    workspace.openDrawer("blocks");
  };
  return { plot, info, boxes, zoom, up, go, blocksBelow, stop: () => endAll(stop) };
}

interface NodeBox extends Box {
  box: FlameBox;
}

const CANVAS = {
  "data-testid": "flame-canvas",
  tabindex: "0",
  role: "img",
  "aria-label": "Flame graph: Tab goes through its frames, Backspace goes up",
};

export function Flame({ session, workspace }: ViewProperties) {
  const state = useMemo(() => open(session, workspace), [session, workspace]);
  useEffect(() => () => state.stop(), [state]);
  const { plot, info, boxes, zoom, up, go, blocksBelow } = state;
  const { linked } = session;
  const graph = info.value.value;
  const choice = linked.flame.value;
  const items = useMemo<NodeBox[]>(
    () =>
      (boxes.value.value ?? []).map((box) => ({
        box,
        x0: box.x0,
        x1: box.x1,
        y: [box.y0, box.y1],
      })),
    [boxes.value.value],
  );
  const keydown = (event: KeyboardEvent) => {
    if (event.key !== "Backspace" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    up();
  };
  const set = (change: Partial<typeof choice>) => {
    linked.flame.value = { ...choice, root: "", ...change };
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
    <div class="flame">
      <div class="toolbar">
        <fieldset class="segmented small">
          <legend class="visually-hidden">What is added up</legend>
          {WEIGHTS.map(([weight, label, title]) => (
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
        {linked.range.value &&
          choice.weight !== "cursor" &&
          pressed("in the range", "Only what happens in the range that is marked", choice.ranged, {
            ranged: !choice.ranged,
          })}
        {pressed("leaf first", "Innermost frame at the top (V)", choice.inverted, {
          inverted: !choice.inverted,
        })}
        <Toggle
          label="hide framework"
          title="Leave out frames of PyTorch, Python and C++ (H)"
          value={linked.hideFramework}
          changed={() => set({})}
        />
        {graph?.matched && (
          <span
            class="matched"
            data-testid="flame-matched"
            data-value={graph.matched.raw}
            title={graph.matched.exact}
          >
            found {graph.matched.text}
          </span>
        )}
        <span class="toolbar-end">
          {linked.node.value && (
            <button type="button" class="button plain" onClick={blocksBelow}>
              Blocks of this node
            </button>
          )}
          <PictureButtons session={session} plot={plot.value} name="flame" />
        </span>
      </div>
      <nav class="breadcrumb" aria-label="Path">
        <ol>
          {(graph?.path ?? []).map(({ path, text }, index, all) => (
            <li key={path}>
              {index === all.length - 1 ? (
                <span aria-current="location">{text}</span>
              ) : (
                <button type="button" class="link" onClick={() => go(path)}>
                  {text}
                </button>
              )}
            </li>
          ))}
        </ol>
        <span
          class="dim"
          data-testid="flame-total"
          data-value={graph?.total.raw}
          title={graph?.total.exact}
        >
          {graph && `${graph.total.text}: ${graph.text}`}
        </span>
      </nav>
      <div
        class="plot"
        role="application"
        aria-roledescription="flame graph"
        aria-label={graph?.text ?? "Flame graph"}
        onKeyDown={keydown}
      >
        <Canvas
          session={session}
          plot={plot}
          attributes={CANVAS}
          make={(surface) =>
            new FlamePlot(
              surface,
              {
                click: (x, y, event) => {
                  const hit = plot.peek()?.hitAt(x, y);
                  if (event.altKey) up();
                  else if (hit) void zoom(hit.block);
                },
                doubleClick: () => undefined,
                marked: () => undefined,
                failed: (error) => session.cannotDraw(error),
              },
              session.hand,
            )
          }
        />
        <NoPicture session={session} plot={plot.value} what="The flame graph" />
        <Overlay plot={plot.value} items={items} class="names" label="Frames">
          {({ box }, place) =>
            place.width >= NAME && (
              <button
                type="button"
                key={box.node}
                class="flame-name"
                data-node={box.node}
                style={placed(place)}
                onClick={(event) => (event.altKey ? up() : void zoom(box.node))}
                onPointerMove={(event) => {
                  const bounds = plot.peek()?.canvas.getBoundingClientRect();
                  if (bounds)
                    plot.peek()?.point(event.clientX - bounds.left, event.clientY - bounds.top);
                }}
                onPointerLeave={() => plot.peek()?.clearHover()}
              >
                <span>{box.text}</span>
                {box.place && <span class="flame-place"> {box.place}</span>}
              </button>
            )
          }
        </Overlay>
        <RowsBar plot={plot.value} units={(graph?.rows ?? 0) * ROW_UNITS} />
        <Tooltip session={session} plot={plot.value} />
        {graph && graph.total.raw === "0" && <p class="plot-state">Nothing is counted here.</p>}
      </div>
    </div>
  );
}
