// The right column of the summary: other findings with their proof, peaks, what was not checked,
// how the file was recorded, and the ranks that have findings.

import { useState } from "preact/hooks";
import type {
  FindingRow,
  LensPeak,
  SaidFinding,
  SettingsCard,
  Summary,
} from "../../generated/protocol.js";
import { rowName } from "../../run.js";
import { Rows } from "../../views/detail-rows.js";
import { ProofChart } from "../../views/proof-chart.js";
import type { FindingCard } from "../../views/queries.js";
import type { ViewUses } from "../../views/workspace.js";
import { SeverityIcon } from "./severity.js";

/** Ranks that are named at first. */
const FIRST_RANKS = 8;
/** Peaks that are listed. */
const PEAKS = 5;

/** The numbers behind the headline. Those of a failed allocation are in the bar. */
export function Proof({ finding }: { finding: FindingRow }) {
  const { record, view } = finding;
  if (!view.chart || record.kind === "oom") return null;
  return (
    <section class="card said" data-severity={record.severity} aria-label="Proof">
      <ProofChart chart={view.chart} />
    </section>
  );
}

type AlsoProperties = ViewUses<"steps"> & {
  said: readonly SaidFinding[];
  findings: readonly FindingRow[];
  omitted: string;
};

/** The findings beside the main one. */
export function Also({ said, findings, omitted, steps }: AlsoProperties) {
  if (said.length === 0) return null;
  return (
    <section class="card" aria-labelledby="summary-also">
      <h3 id="summary-also">Also found</h3>
      <ul>
        {said.map((one) => {
          const finding = findings.find(({ record }) => record.id === one.id);
          return (
            <li key={one.id}>
              <SaidCard said={one} show={() => finding && void steps.goToFinding(finding)} />
            </li>
          );
        })}
      </ul>
      {omitted !== "" && <p class="dim">{omitted}</p>}
    </section>
  );
}

function SaidCard({ said, show }: { said: SaidFinding; show: () => void }) {
  const { id, severity, headline, place, facts, looks, view } = said;
  return (
    <article class="said" data-testid="finding" data-id={id} data-severity={severity}>
      <h4>
        <SeverityIcon severity={severity} />
        <button type="button" class="said-open" title="Show on the timeline" onClick={show}>
          {headline}
        </button>
      </h4>
      {place !== "" && <p class="said-place">{place}</p>}
      {facts.map(([label, text]) => (
        <p key={text} data-fact={label}>
          {text}
        </p>
      ))}
      {looks.map((look) => (
        <p key={look}>{look}</p>
      ))}
      {view.chart && <ProofChart chart={view.chart} />}
    </article>
  );
}

type PeaksProperties = ViewUses<"steps" | "navigation"> & { peaks: readonly LensPeak[] };

export function Peaks({ peaks, steps, navigation }: PeaksProperties) {
  // A single peak is the headline's.
  if (peaks.length < 2) return null;
  const open = (index: number) => {
    navigation.open("timeline");
    steps.goToPeak(index);
  };
  const effect = peaks[0]?.text.slice(1).join(" ") ?? "";
  return (
    <section class="card" aria-labelledby="summary-peaks">
      <h3 id="summary-peaks">Peaks</h3>
      <table class="peaks">
        <tbody>
          {peaks.slice(0, PEAKS).map((peak, index) => (
            <tr key={peak.event}>
              <th scope="row" class="num" data-value={peak.bytes.raw} title={peak.bytes.exact}>
                {peak.bytes.text}
              </th>
              <td>{peak.place}</td>
              <td>
                <button
                  type="button"
                  class="link num"
                  title="Show on the timeline"
                  onClick={() => open(index)}
                >
                  {peak.label}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {effect !== "" && <p class="dim">{effect}</p>}
    </section>
  );
}

export function NotChecked({ summary }: { summary: Summary }) {
  const spots = summary.record.blind_spots;
  if (spots.length === 0) return null;
  return (
    <section class="card" aria-labelledby="summary-blind" data-testid="blind-spots">
      <h3 id="summary-blind">Not checked</h3>
      <ul>
        {spots.map(({ kind, text }) => (
          <li key={kind}>{text}</li>
        ))}
      </ul>
    </section>
  );
}

type RecordingProperties = ViewUses<"selection"> & { settings: SettingsCard; model: string };

/** How the file was recorded, with the allocator's settings and what the file lacks. */
export function Recording({ selection, settings, model }: RecordingProperties) {
  const warnings = selection.trace.value?.part.warnings ?? [];
  return (
    <section class="card" aria-labelledby="summary-recording" data-testid="recording">
      <h3 id="summary-recording">Recording</h3>
      <Rows rows={settings.provenance} />
      {model !== "" && <p data-testid="model">{model}</p>}
      {settings.note && <p class="dim">{settings.note}</p>}
      {settings.settings.length > 0 && (
        <details>
          <summary>Allocator settings</summary>
          <dl class="setting-list">
            {settings.settings.map(({ key, value, text }) => (
              <div key={key} class="setting" data-key={key}>
                <dt>
                  <code>{key}</code> <code class="setting-value">{value}</code>
                </dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      {warnings.length > 0 && (
        <ul class="summary-warnings" aria-label="Warnings">
          {warnings.map(({ code, message, count }) => (
            <li key={code} data-code={code} data-value={count}>
              {message} {count > 1 && <span class="dim">({count} times)</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

type RanksProperties = ViewUses<"runs" | "steps"> & { cards: readonly FindingCard[] };

/** The findings of all ranks, and the ranks that have them. */
export function Ranks({ cards, ...owners }: RanksProperties) {
  if (owners.runs.rows.value.length < 2 || cards.length === 0) return null;
  return (
    <section class="card" aria-labelledby="summary-ranks" data-testid="ranks-with-findings">
      <h3 id="summary-ranks">Ranks with findings</h3>
      <ul>
        {cards.map((card) => (
          <li key={`${card.members[0]?.record.path} ${card.members[0]?.record.id}`}>
            <OfRanks {...owners} card={card} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function OfRanks({ card, runs, steps }: ViewUses<"runs" | "steps"> & { card: FindingCard }) {
  const [isOpen, setOpen] = useState(false);
  const { members, text } = card;
  const [worst] = members;
  if (!worst) return null;
  const named = isOpen ? members : members.slice(0, FIRST_RANKS);
  const rest = members.length - named.length;
  const nameOf = (path: string) => {
    const row = runs.rows.value.find(({ file }) => file.path === path);
    return row ? rowName(row) : path;
  };
  return (
    <article
      class="said"
      data-testid="rank-finding"
      data-id={worst.record.id}
      data-value={worst.record.bytes.raw}
      data-severity={worst.record.severity}
      data-ranks={members.length}
    >
      <h4>
        <SeverityIcon severity={worst.record.severity} />
        {worst.view.label}
      </h4>
      <p>
        {text !== "" && `${text}: `}
        {named.map((member) => (
          <button
            key={member.record.path}
            type="button"
            class="link"
            data-rank={member.record.path}
            title={member.record.title}
            onClick={() => void steps.goToFinding(member)}
          >
            {nameOf(member.record.path)}
          </button>
        ))}
        {rest > 0 && (
          <button type="button" class="link" onClick={() => setOpen(true)}>
            and {rest} more
          </button>
        )}
      </p>
    </article>
  );
}
