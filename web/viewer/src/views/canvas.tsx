// A canvas that a plot draws on, from its mounting to its end.

import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { CanvasPlot } from "../plot/canvas-plot.js";
import type { Session } from "../session.js";
import { NoPicture } from "../ui/words.js";

interface CanvasProperties<P extends CanvasPlot<unknown>> {
  session: Session;
  plot: Signal<P | null>;
  make: (canvas: HTMLCanvasElement) => P;
  label: string;
  /** What cannot be drawn where no canvas can be had. */
  what: string;
  testid: string;
  keydown?: (event: KeyboardEvent) => void;
}

export function Canvas<P extends CanvasPlot<unknown>>(properties: CanvasProperties<P>) {
  const { session, plot, make, label, what, testid, keydown } = properties;
  const canvas = useRef<HTMLCanvasElement>(null);
  const generation = session.canvas.value;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a plot is made once for its canvas
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const gone = new AbortController();
    const { signal } = gone;
    let made: P | null = null;
    const size = new ResizeObserver(() => made?.resize(element.clientWidth, element.clientHeight));
    const start = async () => {
      await session.modules.view;
      if (signal.aborted) return;
      made = make(element);
      made.setTheme(session.dark.peek());
      made.resize(element.clientWidth, element.clientHeight);
      size.observe(element);
      plot.value = made;
    };
    start().catch((error: unknown) => session.cannotDraw(error));
    element.addEventListener(
      "webglcontextlost",
      (event) => {
        event.preventDefault();
        made?.contextLost();
      },
      { signal },
    );
    element.addEventListener("webglcontextrestored", () => made?.contextRestored(), { signal });
    element.addEventListener("blur", () => made?.clearHover(), { signal });
    const theme = session.dark.subscribe((dark) => made?.setTheme(dark));
    return () => {
      gone.abort();
      size.disconnect();
      theme();
      plot.value = null;
      made?.destroy();
    };
  }, [session, generation]);
  return (
    <>
      <canvas
        key={generation}
        ref={canvas}
        data-testid={testid}
        tabIndex={0}
        role="img"
        aria-label={label}
        onKeyDown={keydown}
      />
      <NoPicture session={session} plot={plot.value} what={what} />
    </>
  );
}

/** Ends what a view has begun. */
export function endAll(stop: readonly (() => void)[]): void {
  for (const end of stop) end();
}
