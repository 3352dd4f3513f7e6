// A canvas that a plot draws on, from its mounting to its end.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Surface } from "../plot/surface.js";
import type { Session } from "../session.js";

interface CanvasProperties<P extends CanvasPlot<unknown>> {
  session: Session;
  plot: Signal<P | null>;
  make: (surface: Surface) => P;
  /** What the canvas is to a test and to a screen reader. */
  attributes: Readonly<Record<string, string>>;
}

export function Canvas<P extends CanvasPlot<unknown>>(properties: CanvasProperties<P>) {
  const { session } = properties;
  const place = useRef<HTMLDivElement>(null);
  const generation = session.canvas.value;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a plot is made once for its canvas
  useLayoutEffect(
    () => (place.current ? mount(properties, place.current) : undefined),
    [session, generation],
  );
  return <div class="surface" ref={place} />;
}

/** Puts a canvas there, and takes it away again. */
function mount<P extends CanvasPlot<unknown>>(
  { session, plot, make, attributes }: CanvasProperties<P>,
  place: HTMLElement,
): () => void {
  const gone = new AbortController();
  const { signal } = gone;
  let made: P | null = null;
  const fit = () => made?.resize(place.clientWidth, place.clientHeight);
  const size = new ResizeObserver(fit);
  const theme = session.dark.subscribe((dark) => made?.setTheme(dark));
  const start = async () => {
    await session.modules.view;
    if (signal.aborted) return;
    const surface = session.surfaces.take();
    const { canvas } = surface;
    for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
    made = make(surface);
    const lost = (event: Event) => {
      event.preventDefault();
      made?.contextLost();
    };
    // The GL context can be taken away at any time; the browser gives it back only to those who
    // ask.
    canvas.addEventListener("webglcontextlost", lost, { signal });
    canvas.addEventListener("webglcontextrestored", () => made?.contextRestored(), { signal });
    canvas.addEventListener("blur", () => made?.clearHover(), { signal });
    place.append(canvas);
    made.setTheme(session.dark.peek());
    fit();
    size.observe(place);
    plot.value = made;
  };
  start().catch((error: unknown) => session.cannotDraw(error));
  return () => {
    gone.abort();
    size.disconnect();
    theme();
    plot.value = null;
    made?.canvas.remove();
    made?.destroy();
  };
}
