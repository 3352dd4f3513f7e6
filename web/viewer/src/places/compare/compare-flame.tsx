// The call stacks of both sides as one flame graph: widths are the bytes of one side, colors tell
// what grew and what shrank.

import { effect, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { stopAll } from "../../client/resource.js";
import type { ComparedFlame, FlameBox } from "../../generated/protocol.js";
import { Toggle } from "../../views/controls.js";
import type { ViewUses } from "../../views/workspace.js";
import { FlameArea, MIN_NAME_WIDTH } from "../code/flame-area.js";
import { Path } from "../code/flame-path.js";
import { PictureSwitch } from "./compare-parts.js";
import { ComparePlot, type DrawableTree } from "./compare-plot.js";
import type { Comparing } from "./comparing.js";

/** Queries of the graph. */
function open(comparing: Comparing) {
  const plot: Signal<ComparePlot | null> = signal(null);
  const drawn: Signal<DrawableTree | null> = signal(null);
  const boxes: Signal<readonly FlameBox[]> = signal([]);
  let graphs = 0;
  let lists = 0;
  const stop = [
    effect(() => {
      const [tree, comparison] = [comparing.tree.value, comparing.comparison.value];
      graphs += 1;
      const latest = graphs;
      if (comparison === null) return;
      void comparing.flame(tree).then((flame) => {
        if (latest === graphs) drawn.value = flame && { tree, flame };
      });
    }),
    effect(() => plot.value?.show(drawn.value)),
    effect(() => {
      const range = plot.value?.range.value;
      const width = plot.value?.labels.value?.plot.width ?? 0;
      const of = drawn.value;
      lists += 1;
      const latest = lists;
      if (!range || !of || width === 0) return;
      const least = ((range.x1 - range.x0) / width) * MIN_NAME_WIDTH;
      void comparing.boxes(of.tree, range, least).then((found) => {
        if (latest === lists) boxes.value = found ?? [];
      });
    }),
  ];
  const go = (path: string) => comparing.zoom(path);
  const up = () => go(drawn.peek()?.flame.info.path.at(-2)?.path ?? "");
  const zoom = async (node: number) => {
    await comparing.openNode(node);
    // The names are replaced, so the canvas takes the keyboard focus.
    plot.peek()?.canvas.focus({ preventScroll: true });
  };
  return { plot, drawn, boxes, go, up, zoom, stop: () => stopAll(stop) };
}

type CompareFlameProperties = ViewUses<"comparing" | "viewSelection" | "plots" | "appearance">;

export function CompareFlame({
  comparing,
  viewSelection,
  plots,
  appearance,
}: CompareFlameProperties) {
  const state = useMemo(() => open(comparing), [comparing]);
  useEffect(() => () => state.stop(), [state]);
  const { plot, drawn, boxes, go, up, zoom } = state;
  const flame = drawn.value?.flame;
  const choice = viewSelection.flame.value;
  return (
    <section class="compare-flame" aria-label="Flame graph of both sides">
      <div class="toolbar">
        <PictureSwitch comparing={comparing} />
        <fieldset class="segmented small">
          <legend class="visually-hidden">Widths</legend>
          {([false, true] as const).map((ofA) => (
            <button
              key={String(ofA)}
              type="button"
              aria-pressed={comparing.ofA.value === ofA}
              title={`Widths are bytes of ${ofA ? "A: what B no longer has is drawn" : "B"}`}
              onClick={() => {
                comparing.ofA.value = ofA;
              }}
            >
              {ofA ? "widths of A" : "widths of B"}
            </button>
          ))}
        </fieldset>
        <button
          type="button"
          class="toggle"
          aria-pressed={choice.inverted}
          title="Innermost frame at the top (V)"
          onClick={() => {
            viewSelection.flame.value = { ...choice, inverted: !choice.inverted, root: "" };
          }}
        >
          leaf first
        </button>
        <Toggle
          label="hide framework"
          title="Hide frames of PyTorch, Python and C++ (H)"
          value={viewSelection.hideFramework}
          changed={() => {
            viewSelection.flame.value = { ...choice, root: "" };
          }}
        />
        {flame && <Scale appearance={appearance} flame={flame} />}
      </div>
      <nav class="breadcrumb" aria-label="Path">
        <Path steps={flame?.info.path ?? []} to={({ path }) => go(path)} />
        <span class="dim" title={flame?.info.text}>
          <span data-testid="compare-flame-text" data-value={flame?.info.total.raw}>
            {flame?.text}
          </span>
          {flame?.missing && (
            <span
              class="compare-missing"
              data-testid="compare-missing"
              data-value={flame.missing.raw}
              title={flame.missing.exact}
            >
              {" "}
              · {flame.missing.text}
            </span>
          )}
        </span>
      </nav>
      <FlameArea
        plots={plots}
        appearance={appearance}
        plot={plot}
        label={flame ? `${flame.info.text}: ${flame.text}` : "Flame graph"}
        what="The flame graph"
        testid="compare-canvas"
        boxes={boxes.value}
        rows={flame?.info.rows ?? 0}
        zoom={(node) => void zoom(node)}
        up={up}
        make={(surface, events) =>
          new ComparePlot(surface, events, plots.gestureOptions, comparing)
        }
      >
        {flame?.info.total.raw === "0" && (
          <p class="plot-state">Nothing is live in {comparing.ofA.value ? "A" : "B"} here.</p>
        )}
      </FlameArea>
    </section>
  );
}

/** What the colors mean. */
function Scale({ appearance, flame }: ViewUses<"appearance"> & { flame: ComparedFlame }) {
  return (
    <span
      class="compare-scale toolbar-end"
      data-testid="compare-scale"
      title="Color: the change from A to B, as a share of the larger side"
    >
      <span>only in A</span>
      <span class="compare-scale-colors" role="img" aria-label="blue: shrunk, red: grown">
        {flame.colors.map((color) => (
          <span key={color} style={{ background: appearance.swatch(color) }} />
        ))}
      </span>
      <span>only in B</span>
    </span>
  );
}
