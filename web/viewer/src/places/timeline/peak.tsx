// The peak lens: the events around a separate peak, magnified, beside a treemap of the live set.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { LensPeak, PeakLens } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import { rove } from "../../views/rove.js";
import { type Size, Treemap } from "../../views/treemap.js";
import type { ViewUses } from "../../views/workspace.js";
import { Around } from "./peak-events.js";

type PeakOwners = ViewUses<
  "selection" | "viewSelection" | "filters" | "appearance" | "cards" | "groups" | "steps"
>;

export function Peak(owners: PeakOwners) {
  const { selection, viewSelection } = owners;
  const state = useMemo(() => {
    /** The size of the treemap in CSS pixels; null until it is measured. */
    const size = signal<Size | null>(null);
    const lens = resource(selection, "peakLens", () => {
      const box = size.value;
      return box && { peakLens: { peak: viewSelection.peak.value, ...box } };
    });
    return { size, lens };
  }, [selection, viewSelection]);
  useEffect(() => () => state.lens.stop(), [state]);
  const lens = state.lens.value.value;
  return (
    <div class="peak">
      <Head {...owners} lens={lens} />
      <div class="peak-body">
        <section class="peak-events" aria-label="Allocations and frees around the peak">
          {lens && <Around {...owners} lens={lens} />}
        </section>
        <Treemap {...owners} lens={lens} measured={(size) => measure(state.size, size)} />
      </div>
    </div>
  );
}

function measure(to: { value: Size | null; peek(): Size | null }, next: Size): void {
  const now = to.peek();
  if (now?.width !== next.width || now.height !== next.height) to.value = next;
}

type HeadProperties = PeakOwners & { lens: PeakLens | null };

/** The shown peak in a sentence, and all peaks. */
function Head({ lens, steps }: HeadProperties) {
  const shown = lens?.shown ?? 0;
  const peaks = lens?.peaks ?? [];
  const text = peaks[shown]?.text ?? [];
  const to = (title: string, name: "back" | "forward", index: number) => (
    <button
      type="button"
      class="button plain"
      disabled={peaks[index] === undefined}
      title={title}
      aria-label={title}
      onClick={() => steps.goToPeak(index)}
    >
      <Icon name={name} />
    </button>
  );
  return (
    <div class="peak-head">
      {to("Previous peak", "back", shown - 1)}
      {to("Next lower peak (Shift P)", "forward", shown + 1)}
      <p data-testid="peak-text">
        <b>{text[0]}</b> <span class="dim">{text.slice(1).join(" ")}</span>
      </p>
      <div class="peak-list" role="toolbar" aria-label="Separate peaks" onKeyDown={rove}>
        {peaks.map((peak, index) => (
          <Choice
            key={peak.event}
            peak={peak}
            number={index + 1}
            isShown={index === shown}
            choose={() => steps.goToPeak(index)}
          />
        ))}
      </div>
    </div>
  );
}

interface ChoiceProperties {
  peak: LensPeak;
  number: number;
  isShown: boolean;
  choose: () => void;
}

function Choice({ peak, number, isShown, choose }: ChoiceProperties) {
  const { bytes, label, event, lower } = peak;
  return (
    <button
      type="button"
      class="peak-choice"
      data-event={event}
      data-value={bytes.raw}
      data-lower={lower?.raw}
      aria-pressed={isShown}
      tabIndex={isShown ? 0 : -1}
      title={peak.text.join(" ")}
      onClick={choose}
    >
      <span class="dim">{number}</span> <span>{bytes.text}</span> <span class="dim">{label}</span>
    </button>
  );
}
