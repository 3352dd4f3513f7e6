// The findings by severity, then what could not be looked for. A click jumps to a finding.

import { useEffect, useRef } from "preact/hooks";
import type { FindingRow } from "../generated/protocol.js";
import { type Row, rowName } from "../run.js";
import { Finding } from "./finding.js";
import { saveTable } from "./save.js";
import type { ViewUses } from "./workspace.js";

type AnomaliesProperties = ViewUses<"runs" | "selection" | "navigation" | "queries" | "steps">;

export function Anomalies({ runs, selection, navigation, queries, steps }: AnomaliesProperties) {
  const list = useRef<HTMLUListElement>(null);
  const wanted = navigation.shownFinding.value;
  useEffect(() => {
    if (wanted === null) return;
    const cards = [...(list.current?.querySelectorAll<HTMLElement>("[data-id]") ?? [])];
    const card = cards.find((each) => each.getAttribute("data-id") === wanted);
    if (!card) return;
    navigation.shownFinding.value = null;
    card.scrollIntoView({ block: "nearest" });
    card.querySelector<HTMLElement>(".finding-open")?.focus({ preventScroll: true });
  });
  const findings = queries.allFindings.value;
  const rows = runs.rows.value;
  if (findings === null)
    return (
      <p class="quiet">{selection.target ? "Searching for problems" : "Open a file first."}</p>
    );
  const blindSpots = queries.findings.value.value?.blindSpots ?? [];
  if (findings.length === 0) {
    return (
      <div class="quiet">
        <h3>No problems found</h3>
        <p>
          No out-of-memory event, no growth from step to step, and no memory that is held or
          reserved without use.
        </p>
        <BlindSpots sentences={blindSpots} />
      </div>
    );
  }
  return (
    <div class="anomalies">
      <div class="toolbar">
        <span class="dim">
          {findings.length === 1 ? "1 finding" : `${findings.length} findings, by severity`}
        </span>
        <span class="toolbar-end">
          {(["csv", "json"] as const).map((form) => (
            <button
              key={form}
              type="button"
              class="button plain"
              title={`Save the findings of this rank as ${form.toUpperCase()}`}
              onClick={() => void saveTable(selection, { findings: {} }, form, "anomalies")}
            >
              {form.toUpperCase()}
            </button>
          ))}
        </span>
      </div>
      <div class="findings">
        <ul aria-label="Anomalies" ref={list}>
          {findings.map((finding) => (
            <li key={`${finding.path} ${finding.id}`}>
              <Finding
                finding={finding}
                owner={rows.length > 1 ? ownerOf(finding, rows) : null}
                steps={steps}
              />
            </li>
          ))}
        </ul>
        <BlindSpots sentences={blindSpots} />
      </div>
    </div>
  );
}

/** The rank of a finding if it is known, else its path. */
function ownerOf({ path }: FindingRow, rows: readonly Row[]): string {
  const row = rows.find(({ file }) => file.path === path);
  return row && row.file.planned.rank !== null ? rowName(row) : path;
}

function BlindSpots({ sentences }: { sentences: readonly string[] }) {
  if (sentences.length === 0) return null;
  return (
    <section class="blind-spots" aria-labelledby="blind-spots" data-testid="blind-spots">
      <h4 id="blind-spots">What could not be looked for</h4>
      <ul>
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}
