// The verdict about the focused rank and device, above the views: one sentence, a bar of the memory
// at that moment, and what to do.

import { useEffect, useRef } from "preact/hooks";
import type { BarPart, FindingRow, MemoryBar, Phrase, VerdictCard } from "../generated/protocol.js";
import { Icon } from "../ui/icons.js";
import { ActionChip } from "./action-chip.js";
import { SeverityMark } from "./finding.js";
import { isOfRun, type Story, storyOf, type VerdictUses } from "./verdict-story.js";

/** Below this size of the center the verdict is one line, in CSS pixels. */
const MIN_ROOM = { width: 760, height: 720 };

export function Verdict(owners: VerdictUses) {
  const { navigation, queries } = owners;
  const section = useRef<HTMLElement>(null);
  useEffect(() => follow(section.current, navigation.verdictFits), [navigation]);
  const card = queries.verdict.value;
  const story = storyOf(owners, card);
  const isOpen = navigation.verdictOpen.value && !isOfRun(owners);
  const show = () => showStory(owners, story, card);
  // Their row is kept free until it is known.
  const hasActions = card === null || story.outlier !== null || card.actions.length > 0;
  return (
    <section
      class="verdict"
      ref={section}
      data-testid="verdict"
      data-severity={story.severity ?? undefined}
      data-finding={story.id ?? undefined}
      data-open={isOpen}
      data-actions={hasActions}
      aria-label="Verdict"
      aria-busy={card === null && !isOfRun(owners)}
    >
      <Head {...owners} story={story} show={show} />
      {isOpen && (
        <div class="verdict-second">
          <p class="verdict-detail" title={story.detail}>
            {card && (story.detail || "No finding of high or medium severity.")}
          </p>
          {!hasActions && <Tools {...owners} show={show} />}
        </div>
      )}
      {card?.bar ? <Bar {...owners} bar={card.bar} isOpen={isOpen} /> : <div class="memory-bar" />}
      {isOpen && card && hasActions && (
        <div class="verdict-actions">
          {story.outlier ? (
            <OutlierAction finding={story.outlier} show={show} />
          ) : (
            card.actions.map((action) => (
              <ActionChip
                key={action.text}
                {...owners}
                action={action}
                show={(finding) => showCard(owners, finding)}
              />
            ))
          )}
          <Tools {...owners} show={show} />
        </div>
      )}
    </section>
  );
}

function Tools({ show, ...owners }: VerdictUses & { show: () => void }) {
  return (
    <span class="verdict-tools">
      <Count {...owners} />
      <button type="button" class="button plain" title="Show its place" onClick={show}>
        Show
      </button>
      <button
        type="button"
        class="button plain"
        title="What other settings, devices and sizes need"
        onClick={() => owners.navigation.openDrawer("what-if")}
      >
        What if
      </button>
    </span>
  );
}

/** Brings the card of a finding into view. */
function showCard({ navigation }: VerdictUses, finding: string): void {
  navigation.shownFinding.value = finding;
  navigation.open("findings");
}

/** The number of findings above low, as at the tab of their view. */
function Count({ navigation, ranks }: VerdictUses) {
  const overview = ranks.overview.value;
  if (!overview || overview.groups.length === 0) return null;
  return (
    <button
      type="button"
      class="button plain"
      data-testid="verdict-count"
      data-value={overview.notable}
      title="Show all findings"
      onClick={() => navigation.open("findings")}
    >
      {overview.notable > 0 ? overview.notableText : overview.smallText}
    </button>
  );
}

/** Opens the place of a story: its finding, else the peak. */
function showStory(owners: VerdictUses, { id, outlier }: Story, card: VerdictCard | null): void {
  const { queries, steps } = owners;
  const finding =
    outlier ?? queries.findings.value.peek()?.rows.find(({ record }) => record.id === id);
  const event = card?.bar?.event ?? null;
  if (finding) void steps.goToFinding(finding);
  else if (event !== null) openEvent(owners, event);
}

type HeadProperties = VerdictUses & { story: Story; show: () => void };

function Head({ story, show, ...owners }: HeadProperties) {
  const { navigation } = owners;
  const { owner, headline, severity } = story;
  const isOpen = navigation.verdictOpen.value && !isOfRun(owners);
  const fold = isOpen ? "Fold the verdict" : "Unfold the verdict";
  return (
    <div class="verdict-head">
      {severity && <SeverityMark severity={severity} />}
      <h2 class="verdict-line" title={owner + headline.map(({ text }) => text).join("")}>
        {owner}
        {/* One line may be cut, so it has no controls. */}
        {isOpen ? (
          <Sentence {...owners} phrases={headline} show={show} />
        ) : (
          headline.map(({ text }) => text).join("")
        )}
      </h2>
      {!isOfRun(owners) && (
        <button
          type="button"
          class="button plain verdict-fold"
          aria-expanded={isOpen}
          aria-label={fold}
          title={fold}
          onClick={() => navigation.setVerdictOpen(!isOpen)}
        >
          <Icon name={isOpen ? "up" : "down"} />
        </button>
      )}
    </div>
  );
}

/** Follows whether the center has room for more than one line. */
function follow(section: HTMLElement | null, fits: { value: boolean }): (() => void) | undefined {
  const center = section?.parentElement;
  if (!center) return undefined;
  const observer = new ResizeObserver(() => {
    const { width, height } = center.getBoundingClientRect();
    fits.value = width >= MIN_ROOM.width && height >= MIN_ROOM.height;
  });
  observer.observe(center);
  return () => observer.disconnect();
}

/** Chooses the blocks that a term names, in all views, as a row of the details does. */
function narrow({ groups }: VerdictUses, term: string, keys: MouseEvent): void {
  groups.choose([term], keys);
}

function openEvent({ steps, navigation }: VerdictUses, event: number): void {
  if (["findings", "overview"].includes(navigation.view.peek())) navigation.open("timeline");
  steps.goTo(event);
}

type SentenceProperties = VerdictUses & { phrases: readonly Phrase[]; show: () => void };

function Sentence({ phrases, show, ...owners }: SentenceProperties) {
  return (
    <>
      {phrases.map(({ text, filter, event }) => {
        if (filter !== null) {
          return (
            <button
              key={text}
              type="button"
              class="noun"
              data-filter={filter}
              title={`Show only ${text}`}
              onClick={(event) => narrow(owners, filter, event)}
            >
              {text}
            </button>
          );
        }
        if (event !== null) {
          return (
            <button
              key={text}
              type="button"
              class="noun"
              data-event={event}
              title="Show its place"
              onClick={show}
            >
              {text}
            </button>
          );
        }
        return text;
      })}
    </>
  );
}

function OutlierAction({ finding, show }: { finding: FindingRow; show: () => void }) {
  const { action } = finding.record;
  return (
    <button type="button" class="action-chip" title={action} onClick={show}>
      <span class="action-text">{action}</span>
    </button>
  );
}

type BarProperties = VerdictUses & { bar: MemoryBar; isOpen: boolean };

const percent = (share: number) => `${share * 100}%`;

function Bar({ bar, isOpen, ...owners }: BarProperties) {
  const { parts, capacity, request, moment, reserved } = bar;
  return (
    <div class="memory-bar" data-testid="memory-bar" data-reserved={reserved.raw}>
      <div class="memory-parts">
        {parts.map((part) => (
          <Part key={part.name} {...owners} part={part} isOpen={isOpen} />
        ))}
        {capacity && (
          <span
            class="memory-capacity"
            style={{ left: percent(capacity.at) }}
            title={capacity.label}
            data-value={capacity.bytes.raw}
          />
        )}
      </div>
      <div class="memory-scale">
        {request && (
          <span
            class="memory-request"
            style={{ left: percent(request.from), width: percent(request.to - request.from) }}
            title={request.title}
            data-part="request"
            data-value={request.bytes.raw}
          />
        )}
        <span class="memory-words">
          {reserved.text} reserved {moment}
          {capacity && `, ${capacity.label}`}
          {request && `, ${request.bytes.text} requested`}
        </span>
      </div>
    </div>
  );
}

type PartProperties = VerdictUses & { part: BarPart; isOpen: boolean };

function Part({ part, isOpen, ...owners }: PartProperties) {
  const { name, label, bytes, title, from, to, color, filter } = part;
  const swatch = color === null ? undefined : owners.appearance.swatch(color);
  const place = { left: percent(from), width: percent(to - from), "--part": swatch };
  const words = isOpen && (
    <span class="memory-label" aria-hidden="true">
      <span class="memory-name">{label} </span>
      {bytes.text}
    </span>
  );
  const common = { style: place, title, "data-part": name, "data-value": bytes.raw };
  if (filter === null) {
    return (
      <span class="memory-part" role="img" aria-label={title} {...common}>
        {words}
      </span>
    );
  }
  return (
    <button
      type="button"
      class="memory-part"
      aria-label={title}
      {...common}
      onClick={(event) => narrow(owners, filter, event)}
    >
      {words}
    </button>
  );
}
