// Findings as sentences, by severity. A click jumps to the finding.

import type { FindingRow } from "../generated/protocol.js";
import { type Row, rowName } from "../run.js";
import { saveTable } from "./save.js";
import type { ViewUses } from "./workspace.js";

type AnomaliesProperties = ViewUses<"runs" | "selection" | "queries" | "steps">;

export function Anomalies({ runs, selection, queries, steps }: AnomaliesProperties) {
  const findings = queries.allFindings.value;
  const rows = runs.rows.value;
  if (findings === null)
    return (
      <p class="quiet">{selection.target ? "Searching for problems" : "Open a file first."}</p>
    );
  if (findings.length === 0) {
    return (
      <div class="quiet">
        <h3>No problems found</h3>
        <p>
          No out-of-memory event, no growth from step to step, no delayed frees, and no rank that
          differs from the others.
        </p>
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
      <ul class="findings" aria-label="Anomalies">
        {findings.map((finding) => (
          <li key={`${finding.path} ${finding.id}`}>
            <Finding
              finding={finding}
              owner={rows.length > 1 ? ownerOf(finding, rows) : null}
              open={() => void steps.openFinding(finding)}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The rank of a finding if it is known, else its path. */
function ownerOf({ path }: FindingRow, rows: readonly Row[]): string {
  const row = rows.find(({ file }) => file.path === path);
  return row && row.file.planned.rank !== null ? rowName(row) : path;
}

type FindingProperties = {
  finding: FindingRow;
  /** The rank or file of the finding; null with one file. */
  owner: string | null;
  open: () => void;
};

function Finding({ finding, owner, open }: FindingProperties) {
  const { kind, label, severity, bytes, text, path, at, id } = finding;
  return (
    <button
      type="button"
      class="finding"
      data-testid="finding"
      data-id={id}
      data-kind={kind}
      data-severity={severity}
      data-value={bytes.raw}
      onClick={open}
    >
      <span class="finding-head">
        <span class="severity" title={`${severity} severity`}>
          {severity}
        </span>
        <strong>{label}</strong>
        <span class="num" title={bytes.exact}>
          {bytes.text}
        </span>
        {at !== "" && <span class="num dim">{at}</span>}
        {owner !== null && (
          <span class="dim path" title={path}>
            {owner}
          </span>
        )}
      </span>
      <span class="finding-text">{text}</span>
    </button>
  );
}
