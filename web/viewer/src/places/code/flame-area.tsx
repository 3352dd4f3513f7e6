// The picture of a flame graph: boxes on a canvas, and their names as buttons over it.

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { type FlameBox, ROW_UNITS } from "../../generated/protocol.js";
import type { CanvasPlot, PlotEvents } from "../../plot/canvas-plot.js";
import type { Surface } from "../../plot/surface.js";
import type { Uses } from "../../stores.js";
import { Canvas } from "../../ui/canvas.js";
import { NoPicture } from "../../ui/messages.js";
import { RowsBar } from "../../ui/rows-bar.js";
import { type Tip, Tooltip } from "../../ui/tooltip.js";
import { type Box, Overlay, placed } from "../../views/overlay.js";

/** Narrower nodes have no name, in CSS pixels. */
export const MIN_NAME_WIDTH = 28;
/** Room for a name beside its weight, and for each character of the weight, in CSS pixels. */
const NAME_WIDTH = 76;
const CHARACTER_WIDTH = 6.5;

interface NodeBox extends Box {
  box: FlameBox;
}

type FlameAreaProperties<P extends CanvasPlot<Tip>> = Uses<"plots" | "appearance"> & {
  plot: Signal<P | null>;
  /** The label for screen readers. */
  label: string;
  /** The name of the plot. */
  what: string;
  testid: string;
  boxes: readonly FlameBox[];
  rows: number;
  /** Makes a node the root. */
  zoom: (node: number) => void;
  /** Makes the root's parent the root. */
  up: () => void;
  make: (surface: Surface, events: PlotEvents) => P;
  children?: ComponentChildren;
};

export function FlameArea<P extends CanvasPlot<Tip>>(properties: FlameAreaProperties<P>) {
  const { plots, appearance, plot, label, what, testid, boxes, rows, zoom, up } = properties;
  const items = useMemo<NodeBox[]>(
    () => boxes.map((box) => ({ box, x0: box.x0, x1: box.x1, y: [box.y0, box.y1] })),
    [boxes],
  );
  const keydown = (event: KeyboardEvent) => {
    if (event.key !== "Backspace" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    up();
  };
  return (
    <div
      class="plot"
      role="application"
      aria-roledescription="flame graph"
      aria-label={label}
      onKeyDown={keydown}
    >
      <Canvas
        plots={plots}
        appearance={appearance}
        plot={plot}
        attributes={{
          "data-testid": testid,
          tabindex: "0",
          role: "img",
          "aria-label": "Flame graph: Tab moves through frames, Backspace goes up",
        }}
        make={(surface) =>
          properties.make(surface, {
            click: (x, y, event) => {
              const hit = plot.peek()?.hitAt(x, y);
              if (event.altKey) up();
              else if (hit) zoom(hit.block);
            },
            doubleClick: () => undefined,
            marked: () => undefined,
            failed: (error) => plots.fail(error),
          })
        }
      />
      <NoPicture plots={plots} plot={plot.value} what={what} />
      <Overlay plot={plot.value} items={items} class="names" label="Frames">
        {({ box }, place) =>
          place.width >= MIN_NAME_WIDTH && (
            <button
              type="button"
              key={box.node}
              class="flame-name"
              data-node={box.node}
              style={{ ...placed(place), color: appearance.ink(box.color) }}
              onClick={(event) => (event.altKey ? up() : zoom(box.node))}
              onPointerMove={(event) => {
                const bounds = plot.peek()?.canvas.getBoundingClientRect();
                if (bounds)
                  plot.peek()?.point(event.clientX - bounds.left, event.clientY - bounds.top);
              }}
              onPointerLeave={() => plot.peek()?.clearHover()}
            >
              <span>{box.text}</span>
              {box.place && <span class="flame-place"> {box.place}</span>}
              {place.width >= NAME_WIDTH + box.weight.length * CHARACTER_WIDTH && (
                <span class="flame-weight" aria-hidden="true">
                  {box.weight}
                </span>
              )}
            </button>
          )
        }
      </Overlay>
      <RowsBar plot={plot.value} units={rows * ROW_UNITS} />
      <Tooltip appearance={appearance} plot={plot.value} />
      {properties.children}
    </div>
  );
}
