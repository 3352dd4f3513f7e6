// The map: all segments at the cursor to scale, wrapped into lines, by pool and stream. Beside it
// the segments that few blocks keep from being returned.

import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { resource, stopAll } from "../../client/resource.js";
import type { MapGroup, MapPin, MapSpec, StateChanges } from "../../generated/protocol.js";
import { Canvas } from "../../ui/canvas.js";
import { NoPicture } from "../../ui/messages.js";
import { RowsBar } from "../../ui/rows-bar.js";
import { Tooltip } from "../../ui/tooltip.js";
import { MAP_COLORS, type MapColor } from "../../view-selection.js";
import { type Box, Overlay, type Place, placed } from "../../views/overlay.js";
import { PictureButtons } from "../../views/picture-buttons.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { CHANGES, Key } from "../timeline/ab.js";
import { MapPlot } from "./map-plot.js";
import { Reserved } from "./reserved.js";

/** The usual height of a line in CSS pixels. */
const LINE = 24;

type MapOwners = ViewUses<"selection" | "viewSelection" | "filters" | "plots" | "queries">;

/** Queries of the view, and what it draws. */
function open({ selection, viewSelection, filters, plots }: MapOwners) {
  const plot = plots.map;
  const isShown = signal(false);
  /** The lines that the plot has room for; 0 until it is measured. */
  const lines = signal(0);
  // At the cursor; without a cursor at the peak, like the details.
  const spec = (): MapSpec | null => {
    const peak = selection.trace.value?.device?.peakEvent.raw;
    const { a, b } = viewSelection.ends.value;
    const isChange = viewSelection.mapColor.value === "change" && a !== null && b !== null;
    const cursor = viewSelection.cursor.value ?? (peak === undefined ? null : Number(peak));
    const event = isChange ? b : cursor;
    if (!isShown.value || lines.value === 0 || event === null) return null;
    return { event, from: isChange ? a : null, lines: lines.value };
  };
  let asked: MapSpec | null = null;
  const info = resource(selection, "map", () => {
    asked = spec();
    return asked && { map: { map: asked } };
  });
  const stop = [
    () => info.stop(),
    effect(() => {
      const trace = selection.drawableTrace.value;
      const all = info.value.value;
      const color = viewSelection.color.value;
      const search = filters.text.value;
      plot.value?.show(trace, all && asked && { color, search, spec: asked, info: all });
    }),
    effect(() => {
      plot.value?.setSelected(selection.block.value?.block ?? null);
      // A new map clears the plot's selection.
      info.value.value;
    }),
  ];
  const select = async (block: number | undefined) => {
    const { target } = selection;
    if (block !== undefined && target)
      selection.select(await target.client.block(target.target, block));
  };
  return { plot, info, isShown, lines, select, stop: () => stopAll(stop) };
}

interface Heading extends Box {
  group: MapGroup;
}

interface Pinned extends Box {
  pin: MapPin;
}

const CANVAS = {
  "data-testid": "map-canvas",
  tabindex: "0",
  role: "img",
  "aria-label": "Map: all segments at the cursor to scale, blocks at their addresses",
};

export function SegmentMap({
  appearance,
  player,
  navigation,
  steps,
  shown,
  ...owners
}: MapOwners & ViewProperties & ViewUses<"appearance" | "player" | "navigation" | "steps">) {
  const { selection, plots } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.stop(), [state]);
  const { plot, info, isShown, lines, select } = state;
  useEffect(() => {
    isShown.value = shown;
  }, [isShown, shown]);
  const body = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!body.current) return;
    const observer = new ResizeObserver(([entry]) => {
      const height = entry?.contentRect.height ?? 0;
      if (height > 0) lines.value = Math.floor(height / LINE);
    });
    observer.observe(body.current);
    return () => observer.disconnect();
  }, [lines]);
  const all = info.value.value;
  const items = useMemo<(Heading | Pinned)[]>(
    () => [
      ...(all?.groups ?? []).map((group) => ({
        group,
        x0: Number.NEGATIVE_INFINITY,
        x1: Number.POSITIVE_INFINITY,
        y: group.y,
      })),
      ...(all?.pins ?? []).map((pin) => ({ pin, x0: pin.x[0], x1: pin.x[1], y: pin.y })),
    ],
    [all],
  );
  const playing = player.playing.value;
  const { a, b } = owners.viewSelection.ends.value;
  const isChange = owners.viewSelection.mapColor.value === "change" && a !== null && b !== null;
  const changed = isChange ? owners.queries.changes.value.value : null;
  return (
    <div class="segments map">
      <Reserved {...owners} selection={selection} navigation={navigation} steps={steps} />
      <div class="toolbar">
        <button
          type="button"
          class="button plain"
          aria-pressed={playing}
          title="Step through the events (hold . or ,)"
          onClick={() => (playing ? player.stop() : player.start(1))}
        >
          {playing ? "Pause" : "Play"}
        </button>
        <span data-testid="map-text">{all?.text}</span>
        <span class="dim">{all?.scale}</span>
        <Coloring {...owners} isChange={isChange} />
        {changed ? (
          <ChangeLegend appearance={appearance} changes={changed} />
        ) : (
          <span class="legend" aria-hidden="true">
            <span class="key" data-key="free" /> free
            <span class="key" data-key="pending" /> pending free
          </span>
        )}
        <span class="toolbar-end">
          <PictureButtons
            selection={selection}
            appearance={appearance}
            plot={plot.value}
            name="map"
          />
        </span>
      </div>
      <div class="segments-body">
        <div
          class="plot"
          ref={body}
          role="application"
          aria-roledescription="map of segments"
          aria-label={all?.text ?? "Map"}
        >
          <Canvas
            plots={plots}
            appearance={appearance}
            plot={plot}
            attributes={CANVAS}
            make={(surface) =>
              new MapPlot(
                surface,
                {
                  click: (x, y) => void select(plot.peek()?.hitAt(x, y)?.block),
                  doubleClick: () => plot.peek()?.act((view) => view.fit()),
                  marked: () => undefined,
                  failed: (error) => plots.fail(error),
                },
                plots.gestureOptions,
              )
            }
          />
          <NoPicture plots={plots} plot={plot.value} what="The map" />
          <Overlay plot={plot.value} items={items} class="map-overlay" label="Pools and pins">
            {(item, place) =>
              "group" in item ? (
                <Head key={item.group.name} group={item.group} place={place} />
              ) : (
                <button
                  type="button"
                  key={item.pin.block}
                  class="map-pin"
                  tabIndex={-1}
                  title={`${item.pin.text}\n${item.pin.site}`}
                  aria-label={item.pin.text}
                  style={placed(place)}
                  onClick={() => void select(item.pin.block)}
                />
              )
            }
          </Overlay>
          <RowsBar plot={plot.value} units={all?.units ?? 0} />
          <Tooltip appearance={appearance} plot={plot.value} />
          {all?.units === 0 && <p class="plot-state">No segments are reserved here.</p>}
        </div>
        {all && all.pins.length > 0 && (
          <aside class="map-pins" aria-label="Segments that few blocks keep" data-testid="map-pins">
            <h3>Kept by few blocks</h3>
            <p class="dim">{all.pinned}. A segment is returned to the driver only as a whole.</p>
            {all.pins.map((pin) => (
              <button
                type="button"
                key={pin.block}
                class="map-kept"
                data-value={pin.kept.raw}
                onClick={() => void select(pin.block)}
              >
                {pin.text}
                <span class="share-via">{pin.site}</span>
              </button>
            ))}
          </aside>
        )}
      </div>
    </div>
  );
}

/** The switch between blocks and what changed from A to B. */
function Coloring({ viewSelection, isChange }: MapOwners & { isChange: boolean }) {
  const { mapColor, ends } = viewSelection;
  const { a, b } = ends.value;
  const isReady = a !== null && b !== null;
  return (
    <fieldset class="segmented small" aria-label="Color of the map">
      <span class="segmented-label">Color</span>
      {(Object.entries(MAP_COLORS) as [MapColor, string][]).map(([color, text]) => (
        <button
          type="button"
          key={color}
          aria-pressed={(color === "change") === isChange}
          disabled={color === "change" && !isReady}
          title={
            color === "change" && !isReady
              ? "Set A and B first: mark a range on the timeline, or press ( and ) at the cursor"
              : undefined
          }
          onClick={() => {
            mapColor.value = color;
          }}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

/** What the colors of a change are, with the bytes of all blocks. */
function ChangeLegend({ appearance, changes }: ViewUses<"appearance"> & { changes: StateChanges }) {
  const { all, colors, reserved } = changes;
  const totals = CHANGES.map((name) => ({ key: name, raw: all[name].raw, text: all[name].text }));
  return (
    <ul class="legend map-changes" aria-label="Colors" data-testid="map-legend">
      {[...totals, ...reserved].map(({ key, raw, text }, index) => (
        <li key={key} data-key={key} data-value={raw}>
          <Key appearance={appearance} color={colors[index]} /> {key} <span>{text}</span>
        </li>
      ))}
    </ul>
  );
}

function Head({ group, place }: { group: MapGroup; place: Place }) {
  const cells = [
    ["reserved", group.reserved],
    ["active", group.active],
    ["cached", group.free],
    ["largest free piece", group.hole],
  ] as const;
  return (
    <p
      class="map-head"
      data-testid="map-group"
      style={{ transform: `translateY(${place.top}px)`, height: `${place.height}px` }}
    >
      <b title={group.title}>{group.name}</b>
      <span data-column="segments" data-value={group.segments.raw}>
        {group.segments.exact}
      </span>
      {cells.map(([name, quantity]) => (
        <span key={name} data-column={name} data-value={quantity.raw} title={quantity.exact}>
          {quantity.text} {name}
        </span>
      ))}
    </p>
  );
}
