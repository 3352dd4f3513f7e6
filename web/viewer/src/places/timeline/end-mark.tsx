// The flag of moment A or B over the timeline.

import { useRef, useState } from "preact/hooks";
import type { TimelinePlot } from "../../plot/timeline-plot.js";
import { type Place, placed } from "../../views/overlay.js";
import type { Item } from "./marks.js";

interface EndMarkProperties {
  plot: TimelinePlot | null;
  item: Item;
  place: Place;
}

/** A or B. Its flag can be dragged; keys and commands set it, too. */
export function EndMark({ plot, item, place }: EndMarkProperties) {
  const from = useRef<number | null>(null);
  const [by, setBy] = useState(0);
  const left = place.left + by;
  return (
    <div
      class="mark"
      data-kind={item.kind}
      data-end={item.text}
      title={item.title}
      style={placed({ ...place, left })}
    >
      <span
        class="mark-text"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          from.current = event.clientX;
        }}
        onPointerMove={(event) => {
          if (from.current !== null) setBy(event.clientX - from.current);
        }}
        onPointerUp={() => {
          if (from.current !== null && by !== 0 && plot)
            item.move?.(plot.placeAt(left, place.top).x);
          from.current = null;
          setBy(0);
        }}
        onPointerCancel={() => {
          from.current = null;
          setBy(0);
        }}
      >
        {item.text}
      </span>
    </div>
  );
}
