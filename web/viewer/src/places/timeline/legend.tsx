// The line above the timeline: what the colors mean, with bytes at the cursor, else at the peak. In
// the toolbar: the lines over the stack.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Bands, DetailRow, LegendEntry, Ramp } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import { rove } from "../../views/rove.js";
import type { ViewUses } from "../../views/workspace.js";

type LegendProperties = ViewUses<
  "selection" | "viewSelection" | "filters" | "appearance" | "queries"
>;

/** Terms of the legend: a click on another entry replaces them. */
const ISOLATING = /^(category|site):/;

const LINES: readonly [keyof Bands, string, string][] = [
  ["reserved", "reserved", "reserved_bytes: the segments"],
  ["active", "active", "active_bytes: blocks in use or pending free, as rounded"],
  ["allocated", "allocated", "allocated_bytes: blocks in use, as rounded"],
  [
    "pools",
    "private pools",
    "requested bytes plus whole private pools, which no other code can use",
  ],
];

export function LegendLine(owners: LegendProperties) {
  const { selection, queries } = owners;
  const legend = queries.legend.value.value;
  if (!selection.visibleTrace.value) return null;
  return (
    <div class="legend-line">
      {legend && (
        <>
          <Moment {...owners} at={legend.at} />
          {legend.ramp ? (
            <RampKey {...owners} ramp={legend.ramp} />
          ) : (
            <Entries {...owners} entries={legend.entries} />
          )}
        </>
      )}
    </div>
  );
}

/** When the bytes are counted, and what is requested then. */
function Moment({ queries, viewSelection, at }: LegendProperties & { at: string }) {
  const { cursor } = viewSelection;
  const state = stateOf(queries);
  if (!state) return <span class="legend-at">{at}</span>;
  const { event, label, action, blocks, bands } = state;
  const title = [`${label}, ${action}`, `${blocks.exact} live`, ...bands.map(worded)].join("\n");
  const requested = bands.find(({ key }) => key === "requested_bytes");
  return (
    <span class="legend-at" data-testid="moment" data-event={event} title={title}>
      {at}{" "}
      <b class="legend-bytes" data-key="requested_bytes" data-value={requested?.raw}>
        {requested?.text}
      </b>
      {cursor.value !== null && (
        <button
          type="button"
          class="link"
          title="Clear the cursor (Esc)"
          aria-label="Clear the cursor"
          onClick={() => {
            cursor.value = null;
          }}
        >
          <Icon name="close" />
        </button>
      )}
    </span>
  );
}

/** The state at the cursor, else at the peak. */
const stateOf = ({ stateAt, peak }: LegendProperties["queries"]) =>
  stateAt.value.value ?? peak.value.value;

const worded = ({ label, text }: DetailRow) => `${label} ${text}`;

function Entries({
  entries,
  filters,
  appearance,
}: LegendProperties & { entries: readonly LegendEntry[] }) {
  const list = useRef<HTMLUListElement>(null);
  const [isOpen, setOpen] = useState(false);
  const hidden = useHidden(list, entries, isOpen);
  const terms = filters.terms.value;
  const isIsolated = terms.some((term) => ISOLATING.test(term));
  const isolate = (term: string, { ctrlKey, metaKey }: MouseEvent) => {
    const before = filters.terms.peek();
    if (ctrlKey || metaKey) {
      if (before.includes(term)) filters.remove(term);
      else filters.add(term);
      return;
    }
    const others = before.filter((one) => !ISOLATING.test(one));
    filters.set(before.includes(term) ? others : [...others, term]);
  };
  return (
    <div class="legend-colors" role="toolbar" aria-label="Colors" onKeyDown={rove}>
      <ul
        class="legend-entries"
        aria-label="Colors"
        data-testid="legend"
        data-open={isOpen}
        ref={list}
      >
        {entries.map(({ label, color, bytes, title, term }, index) => {
          const inside = (
            <>
              <span class="swatch" style={{ background: appearance.swatch(color) }} />
              <span class="legend-label">{label}</span>
              <span class="legend-bytes" data-value={bytes.raw}>
                {bytes.text}
              </span>
            </>
          );
          const isOn = terms.includes(term);
          return (
            <li key={`${label} ${color}`} data-term={term}>
              {term === "" ? (
                <span class="legend-entry" title={title}>
                  {inside}
                </span>
              ) : (
                <button
                  type="button"
                  class="legend-entry"
                  tabIndex={index === 0 ? 0 : -1}
                  aria-pressed={isOn}
                  data-quiet={isIsolated && !isOn}
                  title={`${title}\nClick to show only these blocks, Ctrl-click to add them`}
                  onClick={(event) => isolate(term, event)}
                >
                  {inside}
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {(hidden > 0 || isOpen) && (
        <button
          type="button"
          class="link legend-more"
          aria-expanded={isOpen}
          title={isOpen ? "Show the largest" : "Show all"}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? "less" : `+${hidden}`}
        </button>
      )}
    </div>
  );
}

/** The number of entries that the row has no room for. */
function useHidden(
  list: { readonly current: HTMLUListElement | null },
  entries: readonly LegendEntry[],
  isOpen: boolean,
): number {
  const [hidden, setHidden] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: entries and the fold change the width
  useLayoutEffect(() => {
    const element = list.current;
    if (!element) return;
    const count = () => {
      const [first, ...rest] = [...element.children] as HTMLElement[];
      setHidden(rest.filter((entry) => entry.offsetTop > (first?.offsetTop ?? 0)).length);
    };
    count();
    const observer = new ResizeObserver(count);
    observer.observe(element);
    return () => observer.disconnect();
  }, [entries, isOpen]);
  return hidden;
}

function RampKey({ ramp, appearance }: LegendProperties & { ramp: Ramp }) {
  const stops = ramp.colors.map((color) => appearance.swatch(color)).join(", ");
  return (
    <p class="legend-ramp" data-testid="legend">
      {ramp.low}
      <span class="ramp" style={{ background: `linear-gradient(to right, ${stops})` }} />
      {ramp.high}
    </p>
  );
}

/** Switches of the lines over the stack. */
export function Lines({
  viewSelection,
  queries,
  levers,
}: ViewUses<"viewSelection" | "queries" | "levers">) {
  const { bands } = viewSelection;
  const hasPools = (queries.minimap.value.value?.pools ?? 0) > 0;
  const isSimulated = Boolean(levers.curve.value.value?.path);
  const state = stateOf(queries);
  return (
    <fieldset class="legend-lines" aria-label="Lines">
      {LINES.filter(([band]) => band !== "pools" || hasPools).map(([band, label, title]) => (
        <button
          type="button"
          key={band}
          class="legend-entry"
          data-band={band}
          aria-pressed={bands.value[band]}
          title={`Line of ${title}`}
          onClick={() => (bands.value = { ...bands.peek(), [band]: !bands.peek()[band] })}
        >
          <span class="line" data-band={band} />
          <span class="legend-label">{label}</span>
          {bands.value[band] && <BandBytes band={state?.bands.find(isOf(band))} />}
        </button>
      ))}
      {isSimulated && (
        <span class="legend-entry">
          <span class="line" data-band="simulated" />
          <span class="legend-label">reserved, simulated</span>
        </span>
      )}
    </fieldset>
  );
}

/** Finds the row of a line. */
const isOf =
  (band: keyof Bands) =>
  ({ key }: DetailRow) =>
    key === `${band}_bytes`;

function BandBytes({ band }: { band: DetailRow | undefined }) {
  return (
    band && (
      <span class="legend-bytes" data-key={band.key} data-value={band.raw}>
        {band.text}
      </span>
    )
  );
}
