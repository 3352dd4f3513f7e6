// The allocations and frees around a peak: each a bar from the total before it to the total after,
// and a row.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LensEvent, PeakLens } from "../../generated/protocol.js";
import { rove } from "../../views/rove.js";
import type { ViewUses } from "../../views/workspace.js";

type AroundProperties = ViewUses<"selection" | "appearance" | "cards" | "steps"> & {
  lens: PeakLens;
};

/** Units of the picture: width of a bar, and height. */
const BAR = 10;
const HEIGHT = 1000;
/** The edge of a picture that is a part of a longer one. */
const ZIGZAG = `M2 0${"l5 6l-5 6".repeat(60)}`;

export function Around(owners: AroundProperties) {
  const { lens, cards, steps } = owners;
  const { events, earlier, later } = lens;
  const [pointed, setPointed] = useState<number | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const at = events.findIndex((event) => event.isPeak);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other events come with another lens
  useLayoutEffect(() => {
    const row = list.current?.children[at];
    if (list.current && row instanceof HTMLElement)
      list.current.scrollTop =
        row.offsetTop - list.current.offsetTop - list.current.clientHeight / 2;
  }, [lens]);
  const open = async (event: LensEvent) => {
    await cards.showBlock(event.block);
    steps.goTo(event.event);
  };
  if (events.length === 0) return <p class="quiet">Nothing is allocated or freed here.</p>;
  return (
    <>
      <Picture {...owners} pointed={pointed} point={setPointed} open={open} />
      <p class="peak-break dim">
        <span>{earlier}</span>
        <span>{later}</span>
      </p>
      <div
        class="peak-rows"
        role="toolbar"
        aria-orientation="vertical"
        aria-label="Allocations and frees"
        data-testid="peak-rows"
        ref={list}
        onKeyDown={rove}
      >
        {events.map((event, index) => (
          <Row
            key={`${event.event} ${event.block}`}
            {...owners}
            event={event}
            isPointed={pointed === index}
            isFirst={index === Math.max(at, 0)}
            point={(on) => setPointed(on ? index : null)}
            open={() => void open(event)}
          />
        ))}
      </div>
    </>
  );
}

type PictureProperties = AroundProperties & {
  pointed: number | null;
  point: (index: number | null) => void;
  open: (event: LensEvent) => Promise<void>;
};

function Picture({ lens, appearance, selection, pointed, point, open }: PictureProperties) {
  const { events, edges } = lens;
  const [most, least] = edges;
  const at = events.findIndex((event) => event.isPeak);
  const selected = selection.block.value?.block;
  const y = (share: number) => (1 - share) * HEIGHT;
  return (
    <div class="peak-picture">
      <div class="peak-ticks" aria-hidden="true">
        <span>{most?.text}</span>
        <span>{least?.text}</span>
      </div>
      <Break />
      <svg
        viewBox={`0 0 ${events.length * BAR} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        data-testid="peak-picture"
        onPointerLeave={() => point(null)}
      >
        <title>{`Requested bytes around the peak, from ${least?.text} to ${most?.text}`}</title>
        {at >= 0 && <rect class="peak-at" x={at * BAR} y={0} width={BAR} height={HEIGHT} />}
        {events.map((event, index) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the rows below take keys
          <g
            key={`${event.event} ${event.block}`}
            class="peak-bar"
            data-event={event.event}
            data-pointed={pointed === index}
            data-selected={event.block === selected}
            data-frees={event.bytes.raw.startsWith("-")}
            style={{ color: appearance.swatch(event.color) }}
            onPointerEnter={() => point(index)}
            onClick={() => void open(event)}
          >
            <rect class="peak-ground" x={index * BAR} y={0} width={BAR} height={HEIGHT} />
            <rect
              class="peak-fill"
              x={index * BAR + 1}
              y={y(event.y[1])}
              width={BAR - 2}
              height={Math.max(HEIGHT * 0.012, (event.y[1] - event.y[0]) * HEIGHT)}
            />
          </g>
        ))}
      </svg>
      <Break />
    </div>
  );
}

/** The picture is cut here: the recording goes on. */
function Break() {
  return (
    <svg class="peak-cut" width="9" aria-hidden="true">
      <path d={ZIGZAG} />
    </svg>
  );
}

type RowProperties = AroundProperties & {
  event: LensEvent;
  isPointed: boolean;
  /** Whether the Tab key leads here. */
  isFirst: boolean;
  point: (on: boolean) => void;
  open: () => void;
};

function Row({ event, appearance, selection, isPointed, isFirst, point, open }: RowProperties) {
  const { label, bytes, total, site, category, color, isPeak } = event;
  return (
    <button
      type="button"
      class="peak-row"
      data-event={event.event}
      data-peak={isPeak}
      data-pointed={isPointed}
      aria-pressed={selection.block.value?.block === event.block}
      tabIndex={isFirst ? 0 : -1}
      title={`${label}: ${bytes.exact}\n${site}, ${category}\n${total.exact} after it`}
      onPointerEnter={() => point(true)}
      onPointerLeave={() => point(false)}
      onClick={open}
    >
      <span class="dim">{label}</span>
      <span class="num" data-column="bytes" data-value={bytes.raw}>
        {bytes.text}
      </span>
      <span class="peak-site">
        <span class="swatch" style={{ background: appearance.swatch(color) }} />
        <span>{site}</span>
      </span>
      <span class="num" data-column="total" data-value={total.raw}>
        {total.text}
        {isPeak && <b> peak</b>}
      </span>
    </button>
  );
}
