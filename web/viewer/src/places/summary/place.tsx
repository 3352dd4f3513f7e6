// The first place: what is so, what to change, and what holds the memory at that moment.

import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { Summary as Answer, SummaryPlot } from "../../generated/protocol.js";
import { PlotState } from "../../ui/plot-state.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { Bar } from "./bar.js";
import { Also, Facts, Ranks } from "./facts.js";
import { LeverTable } from "./lever-table.js";
import { Lines, Plot } from "./plot.js";
import { SeverityIcon } from "./severity.js";
import { isOfRun, isWithoutDevice, type Story, storyOf } from "./story.js";
import { Unfolded } from "./unfolded.js";

type SummaryUses = ViewUses<
  | "runs"
  | "selection"
  | "viewSelection"
  | "groups"
  | "navigation"
  | "appearance"
  | "queries"
  | "ranks"
  | "steps"
  | "sources"
  | "levers"
  | "plots"
  | "status"
  | "workspace"
>;

export function Summary({ shown, ...owners }: SummaryUses & ViewProperties) {
  const { selection, queries, levers } = owners;
  const plot = useMemo(
    () => resource(selection, "summaryPlot", () => ({ summaryPlot: {} })),
    [selection],
  );
  useEffect(() => () => plot.stop(), [plot]);
  const story = storyOf(owners);
  const isAlone = isOfRun(owners) || isWithoutDevice(owners);
  const summary = isAlone ? null : queries.summary.value;
  const isBusy = story.headline === "" && !isAlone;
  if (levers.isUnfolded.value && summary) {
    return (
      <div class="summary">
        <Unfolded {...owners} story={story} />
      </div>
    );
  }
  const state = selection.focus.value?.file.load.value.state ?? "ready";
  if (state !== "ready") {
    return (
      <div class="summary">
        <PlotState {...owners} />
      </div>
    );
  }
  return (
    <div class="summary">
      <div class="summary-grid">
        <Head {...owners} story={story} shown={shown} isBusy={isBusy} />
        {summary?.view.bar && <Bar {...owners} bar={summary.view.bar} />}
        {summary ? (
          <Body {...owners} summary={summary} story={story} plot={plot.value.value} />
        ) : (
          !isWithoutDevice(owners) && (
            <div class="summary-main">
              <Ranks {...owners} cards={queries.cards.value ?? []} />
            </div>
          )
        )}
        {summary && <Facts {...owners} summary={summary} />}
      </div>
    </div>
  );
}

type BodyProperties = SummaryUses & { summary: Answer; story: Story; plot: SummaryPlot | null };

/** The levers, and the moment beside them. */
function Body({ summary, story, plot, ...owners }: BodyProperties) {
  const { queries, navigation, steps } = owners;
  const main = { id: story.finding?.record.id ?? null, remedy: summary.view.remedy };
  const open = () => {
    navigation.open("timeline");
    const event = summary.view.bar?.event ?? null;
    if (story.finding) void steps.goToFinding(story.finding);
    else if (event !== null) steps.goTo(event);
  };
  return (
    <>
      <div class="summary-main">
        <LeverTable {...owners} main={main} />
        <OtherFindings {...owners} story={story} />
        <Ranks {...owners} cards={queries.cards.value ?? []} />
      </div>
      <div class="summary-side">
        {plot ? (
          <>
            <Plot {...owners} plot={plot} open={open} />
            <Lines {...owners} plot={plot} />
          </>
        ) : (
          <div class="side-wait" aria-busy="true" />
        )}
      </div>
    </>
  );
}

/** What neither the headline nor a row says. */
function OtherFindings({ story, queries, levers, steps }: SummaryUses & { story: Story }) {
  const view = queries.summary.value?.view;
  if (!view) return null;
  const rows = levers.table.value.value?.rows ?? [];
  const cured = new Set(rows.map(({ cures }) => cures));
  const main = story.finding?.record.id;
  const others = view.findings.filter(({ record: { id } }) => id !== main && !cured.has(id));
  return <Also findings={others} omitted={view.omitted} steps={steps} />;
}

type HeadProperties = SummaryUses & { story: Story; shown: boolean; isBusy: boolean };

function Head({ story, shown, isBusy, ...owners }: HeadProperties) {
  const { severity, lines, finding, source } = story;
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
      {story.headline !== "" && (
        <h2>
          {severity && <SeverityIcon severity={severity} />}
          <Headline {...owners} story={story} />
        </h2>
      )}
      {lines.length > 0 && <p class="summary-why">{lines.join(" ")}</p>}
      {isWithoutDevice(owners) && (
        <p class="summary-why">
          Call <code>torch.cuda.memory._record_memory_history()</code> in the process that
          allocates, before the first tensor.
        </p>
      )}
      {source && (
        <pre class="summary-source">
          <span class="dim">{source.line}</span> {source.text}
        </pre>
      )}
    </section>
  );
}

/** The headline; the line that it names opens in Code. */
function Headline({ story, sources }: ViewUses<"sources"> & { story: Story }) {
  const { owner, headline, place, finding } = story;
  const title = finding?.record.text;
  const at = place && place.site !== "" ? headline.indexOf(place.site) : -1;
  if (!place || at < 0 || place.line === 0) {
    return (
      <span data-headline title={title}>
        {owner}
        {headline}
      </span>
    );
  }
  const end = at + place.site.length;
  return (
    <span data-headline title={title}>
      {owner}
      {headline.slice(0, at)}
      <button
        type="button"
        class="place"
        title="Open in Code"
        onClick={() => sources.open(place.file, place.line)}
      >
        {place.site}
      </button>
      {headline.slice(end)}
    </span>
  );
}
