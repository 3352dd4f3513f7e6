// Mounts a canvas and the plot that draws on it.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Surface } from "../plot/surface.js";
import type { Uses } from "../stores.js";

type CanvasProperties<P extends CanvasPlot<unknown>> = Uses<"plots" | "appearance"> & {
  plot: Signal<P | null>;
  make: (surface: Surface) => P;
  /** Attributes for tests and screen readers. */
  attributes: Readonly<Record<string, string>>;
};

export function Canvas<P extends CanvasPlot<unknown>>(properties: CanvasProperties<P>) {
  const { plots } = properties;
  const place = useRef<HTMLDivElement>(null);
  const generation = plots.generation.value;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a plot is made once for its canvas
  useLayoutEffect(
    () => (place.current ? mount(properties, place.current) : undefined),
    [plots, generation],
  );
  return <div class="surface" ref={place} />;
}

/** Mounts a canvas with its plot. Returns a function that unmounts both. */
function mount<P extends CanvasPlot<unknown>>(
  { plots, appearance, plot, make, attributes }: CanvasProperties<P>,
  place: HTMLElement,
): () => void {
  const gone = new AbortController();
  const { signal } = gone;
  let made: P | null = null;
  const fit = () => made?.resize(place.clientWidth, place.clientHeight);
  const size = new ResizeObserver(fit);
  const theme = appearance.dark.subscribe((dark) => made?.setTheme(dark));
  const start = async () => {
    await plots.ready;
    if (signal.aborted) return;
    const surface = plots.surfaces.take();
    const { canvas } = surface;
    for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
    made = make(surface);
    const lost = (event: Event) => {
      event.preventDefault();
      made?.contextLost();
    };
    // The browser may take the GL context away. It gives the context back only if the default
    // action is prevented.
    canvas.addEventListener("webglcontextlost", lost, { signal });
    canvas.addEventListener("webglcontextrestored", () => made?.contextRestored(), { signal });
    canvas.addEventListener("blur", () => made?.clearHover(), { signal });
    place.append(canvas);
    made.setTheme(appearance.dark.peek());
    fit();
    size.observe(place);
    plot.value = made;
  };
  start().catch((error: unknown) => plots.fail(error));
  return () => {
    gone.abort();
    size.disconnect();
    theme();
    plot.value = null;
    made?.canvas.remove();
    made?.destroy();
  };
}
