// What is wrong, most severe first, in sentences; each opens the place that shows it.

import type { FindingRow } from "../generated/protocol.js";
import { saveTable } from "./save.js";
import type { ViewProperties } from "./ui.js";

export function Anomalies({ session, workspace }: ViewProperties) {
  const findings = workspace.allFindings.value;
  const several = session.rows.value.length > 1;
  if (findings === null)
    return (
      <p class="quiet">{session.asked ? "Looking for what stands out" : "Open a file first."}</p>
    );
  if (findings.length === 0) {
    return (
      <div class="quiet">
        <h3>Nothing stands out</h3>
        <p>
          No out-of-memory event, no growth from step to step, no memory that waits long for its
          free, no rank that differs from the others.
        </p>
      </div>
    );
  }
  return (
    <div class="anomalies">
      <div class="toolbar">
        <span class="dim">
          {findings.length === 1 ? "1 finding" : `${findings.length} findings`}, the most severe
          first
        </span>
        <span class="toolbar-end">
          {(["csv", "json"] as const).map((form) => (
            <button
              key={form}
              type="button"
              class="button plain"
              title={`The findings of this rank as ${form.toUpperCase()}`}
              onClick={() => void saveTable(session, { findings: {} }, form, "anomalies")}
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
              several={several}
              open={() => void workspace.openFinding(finding)}
            />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Finding({
  finding,
  several,
  open,
}: {
  finding: FindingRow;
  several: boolean;
  open: () => void;
}) {
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
        {several && (
          <span class="dim path" title={path}>
            {path}
          </span>
        )}
      </span>
      <span class="finding-text">{text}</span>
    </button>
  );
}
