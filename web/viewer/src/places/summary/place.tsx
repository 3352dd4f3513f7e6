// The first place: what `vramscope diagnose` says of the device in focus, from its record, with the
// memory to scale, the changes that fit, and what is live at the peak.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { FindingPlace, FindingRow, SummaryView } from "../../generated/protocol.js";
import { Frame } from "../../ui/call-stack.js";
import { Icon } from "../../ui/icons.js";
import { type Size, Treemap } from "../../views/treemap.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { Bar } from "./bar.js";
import { Also, NotChecked, Peaks, Proof, Ranks, Recording } from "./cards.js";
import { Fixes } from "./fixes.js";
import { SeverityIcon } from "./severity.js";
import { isOfRun, isWithoutDevice, type Story, storyOf } from "./story.js";

type SummaryUses = ViewUses<
  | "runs"
  | "selection"
  | "viewSelection"
  | "filters"
  | "groups"
  | "navigation"
  | "appearance"
  | "queries"
  | "ranks"
  | "steps"
  | "sources"
  | "workspace"
>;

export function Summary({ shown, ...owners }: SummaryUses & ViewProperties) {
  const { selection, navigation, queries } = owners;
  const state = useMemo(() => {
    /** The size of the treemap in CSS pixels; null until it is measured. */
    const size = signal<Size | null>(null);
    const isShown = signal(false);
    const lens = resource(selection, "peakLens", () => {
      const box = size.value;
      return box && isShown.value ? { peakLens: { peak: 0, ...box } } : null;
    });
    return { size, isShown, lens };
  }, [selection]);
  state.isShown.value = shown;
  useEffect(() => () => state.lens.stop(), [state]);
  const story = storyOf(owners);
  const summary = isOfRun(owners) || isWithoutDevice(owners) ? null : queries.summary.value;
  const settings = queries.settings.value.value;
  const lens = state.lens.value.value;
  const isBusy = story.headline === "" && !isOfRun(owners) && !isWithoutDevice(owners);
  const hasHistory = selection.trace.value?.device?.note === null;
  // The first is told by the headline, unless it is of low severity or of another rank.
  const main = story.finding?.record.id;
  const also = summary?.view.findings.filter(({ id }) => id !== main) ?? [];
  return (
    <div class="summary">
      <div class="summary-grid">
        <Head {...owners} story={story} shown={shown} isBusy={isBusy} />
        {summary?.view.bar && <Bar {...owners} bar={summary.view.bar} />}
        {summary && (
          <div class="summary-main">
            {summary.view.fixes.length > 0 && <Fixes {...owners} view={summary.view} />}
            <MoreChanges view={summary.view} />
            <Treemap
              {...owners}
              lens={lens}
              heading={hasHistory ? "Live at the peak" : "In use at the end"}
              measured={(size) => measure(state.size, size)}
              action={
                <button type="button" class="link" onClick={() => navigation.open("source")}>
                  Open in Code
                </button>
              }
            />
          </div>
        )}
        <div class="summary-cards">
          {story.finding && <Proof finding={story.finding} />}
          <Ranks {...owners} cards={queries.cards.value ?? []} />
          {summary && (
            <>
              <Also
                {...owners}
                said={also}
                findings={queries.findings.value}
                omitted={summary.view.omitted}
              />
              <Peaks {...owners} peaks={lens?.peaks ?? []} />
              <NotChecked summary={summary} />
              {settings && <Recording {...owners} settings={settings} model={summary.view.model} />}
            </>
          )}
        </div>
      </div>
    </div>
  );
}

/** Replays take their time; their place is not empty meanwhile. */
function MoreChanges({ view }: { view: SummaryView }) {
  if (view.isSimulated || view.fixes.length > 0) return null;
  return <p class="dim summary-wait">Replaying the run with changes</p>;
}

function measure(to: { value: Size | null; peek(): Size | null }, next: Size): void {
  const now = to.peek();
  if (now?.width !== next.width || now.height !== next.height) to.value = next;
}

type HeadProperties = SummaryUses & { story: Story; shown: boolean; isBusy: boolean };

function Head({ story, shown, isBusy, ...owners }: HeadProperties) {
  const { owner, headline, severity, lines, finding } = story;
  const [first, ...rest] = lines;
  const place = finding?.record.place ?? null;
  return (
    <section
      class="summary-head"
      // A hidden place must not answer for the line beside the navigation.
      data-testid={shown ? "verdict" : undefined}
      data-severity={severity ?? undefined}
      data-finding={finding?.record.id}
      aria-label="Verdict"
      aria-busy={isBusy}
    >
      {headline !== "" && (
        <h2>
          <SeverityIcon severity={severity} />
          <span data-headline>
            {owner}
            {headline}
          </span>
        </h2>
      )}
      <p class="summary-tools">
        <ShowButton {...owners} story={story} />
        {place && <PlaceButton {...owners} place={place} />}
      </p>
      {lines.length > 0 && (
        <p class="summary-why">
          <span>{first}</span> {rest.join(" ")}
        </p>
      )}
      {isWithoutDevice(owners) && (
        <p class="summary-why">
          The file has no segment, no block and no event. Call{" "}
          <code>torch.cuda.memory._record_memory_history()</code> in the process that allocates,
          before the first tensor.
        </p>
      )}
      {place?.source && (
        <pre class="summary-source">
          <span class="dim">{place.line}</span> {place.source}
        </pre>
      )}
      {finding && (
        <InFull {...owners} finding={finding} isTold={lines[0] === finding.record.text} />
      )}
    </section>
  );
}

type InFullProperties = ViewUses<"workspace"> & { finding: FindingRow; isTold: boolean };

/** The whole text of a finding and the program's innermost frames, which the headline shortens. */
function InFull({ finding, isTold, workspace }: InFullProperties) {
  const { text } = finding.record;
  const { frames } = finding.view;
  if (isTold && frames.length === 0) return null;
  return (
    <details class="summary-full">
      <summary>In full</summary>
      {!isTold && <p data-testid="finding-text">{text}</p>}
      {frames.length > 0 && (
        <ol class="frames" aria-label="Call stack">
          {frames.map((frame, index) => (
            <Frame key={index} workspace={workspace} frame={frame} />
          ))}
        </ol>
      )}
    </details>
  );
}

function ShowButton({
  story,
  queries,
  steps,
  navigation,
  selection,
}: SummaryUses & { story: Story }) {
  const event = queries.summary.value?.view.bar?.event ?? null;
  const { finding } = story;
  const hasTime = selection.trace.value?.device?.note === null;
  if (finding === null && (event === null || !hasTime)) return null;
  const show = () => {
    if (finding) {
      void steps.goToFinding(finding);
      return;
    }
    navigation.open("timeline");
    if (event !== null) steps.goTo(event);
  };
  return (
    <button type="button" class="button" onClick={show}>
      <Icon name="chart" /> Show on the timeline
    </button>
  );
}

function PlaceButton({ place, sources }: SummaryUses & { place: FindingPlace }) {
  const { site, note, file, line } = place;
  const title = note === "" ? site : `${site}, ${note}`;
  if (line === 0) return null;
  return (
    <button type="button" class="button" title={title} onClick={() => sources.open(file, line)}>
      <Icon name="code" /> <span class="summary-site">{site}</span>
    </button>
  );
}
