// The recording in one line, with its details behind it, and the findings that have no row: those
// of the device, and those of other ranks.

import { useState } from "preact/hooks";
import type { FindingRow, Summary } from "../../generated/protocol.js";
import { rowName } from "../../run.js";
import { Icon } from "../../ui/icons.js";
import { Rows } from "../../views/detail-rows.js";
import type { FindingCard } from "../../views/queries.js";
import type { ViewUses } from "../../views/workspace.js";
import { SeverityIcon } from "./severity.js";

/** Ranks that are named at first. */
const FIRST_RANKS = 8;

export function Facts({
  summary,
  selection,
  queries,
}: ViewUses<"selection" | "queries"> & { summary: Summary }) {
  const settings = queries.settings.value.value;
  const warnings = selection.trace.value?.part.warnings ?? [];
  const { facts } = summary.view;
  return (
    <details class="summary-facts" data-testid="recording">
      <summary>
        <span class="facts-line" title={facts.join("\n")}>
          {facts.map((fact) => (
            <span key={fact}>{fact}</span>
          ))}
        </span>
        <span class="facts-open">
          <Icon name="forward" /> Details of the recording
        </span>
      </summary>
      {summary.record.blind_spots.length > 0 && (
        <ul aria-label="Not checked" data-testid="blind-spots">
          {summary.record.blind_spots.map(({ kind, text }) => (
            <li key={kind}>{text}</li>
          ))}
        </ul>
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
      {settings && (
        <div class="facts-rows">
          <Rows rows={settings.provenance} />
          {settings.note && <p class="dim">{settings.note}</p>}
          {settings.settings.length > 0 && (
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
          )}
        </div>
      )}
    </details>
  );
}

type AlsoProperties = ViewUses<"steps"> & {
  findings: readonly FindingRow[];
  omitted: string;
};

/** The findings beside that of the headline. A click shows one on the timeline. */
export function Also({ findings, omitted, steps }: AlsoProperties) {
  if (findings.length === 0) return null;
  return (
    <section class="summary-also" aria-labelledby="summary-also">
      <h3 id="summary-also">Also found</h3>
      <ul>
        {findings.map((finding) => {
          const { id, severity } = finding.record;
          return (
            <li key={id} data-testid="finding" data-id={id} data-severity={severity}>
              <SeverityIcon severity={severity} />
              <button
                type="button"
                class="also-open"
                title={finding.record.text}
                onClick={() => void steps.goToFinding(finding)}
              >
                {finding.view.headline.map(({ text }) => text).join("")}
              </button>
            </li>
          );
        })}
      </ul>
      {omitted !== "" && <p class="dim">{omitted}</p>}
    </section>
  );
}

type RanksProperties = ViewUses<"runs" | "steps"> & { cards: readonly FindingCard[] };

/** The findings of all ranks, and the ranks that have them. */
export function Ranks({ cards, ...owners }: RanksProperties) {
  if (owners.runs.rows.value.length < 2 || cards.length === 0) return null;
  return (
    <section class="summary-also" aria-labelledby="summary-ranks" data-testid="ranks-with-findings">
      <h3 id="summary-ranks">Ranks with findings</h3>
      <ul>
        {cards.map((card) => (
          <OfRanks
            key={`${card.members[0]?.record.path} ${card.members[0]?.record.id}`}
            {...owners}
            card={card}
          />
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
    <li
      data-testid="rank-finding"
      data-id={worst.record.id}
      data-value={worst.record.bytes.raw}
      data-severity={worst.record.severity}
      data-ranks={members.length}
    >
      <SeverityIcon severity={worst.record.severity} />
      <span>
        <b>{worst.view.label}</b> {text !== "" && `${text}: `}
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
      </span>
    </li>
  );
}
