// Compares two snapshots or ranks: both curves on one axis, totals, and the call stacks that
// differ.

import { useEffect, useState } from "preact/hooks";
import { fromInput } from "../../client/files.js";
import type {
  BandKind,
  ComparedCurves,
  Comparison,
  SideFinding,
} from "../../generated/protocol.js";
import { type Row, rowName } from "../../run.js";
import type { Uses } from "../../stores.js";
import { Icon } from "../../ui/icons.js";
import { OpenButton } from "../../ui/open-button.js";
import { Choice } from "../../views/controls.js";
import type { ViewProperties } from "../../views/ui.js";
import type { ViewUses } from "../../views/workspace.js";
import { CompareFlame } from "./compare-flame.js";
import { Curves, Group, Recording } from "./compare-parts.js";
import { Stacks } from "./compare-stacks.js";
import type { Comparing } from "./comparing.js";

const BANDS: readonly (readonly [BandKind, string])[] = [
  ["requested_bytes", "requested"],
  ["active_bytes", "active"],
  ["allocated_bytes", "allocated"],
  ["reserved_bytes", "reserved"],
];

type CompareProperties = ViewProperties &
  ViewUses<
    "runs" | "loader" | "selection" | "viewSelection" | "comparing" | "plots" | "appearance"
  >;

export function Compare({ runs, loader, shown, ...owners }: CompareProperties) {
  const { comparing } = owners;
  useEffect(() => {
    comparing.show(shown);
    return () => comparing.show(false);
  }, [comparing, shown]);
  const [comparison, rows] = [comparing.comparison.value, runs.rows.value];
  if (rows.length < 2) return <Alone loader={loader} />;
  return (
    <div class="compare">
      <div class="toolbar">
        <Side
          name="A"
          use="baseline"
          rows={rows}
          chosen={comparing.a.value}
          choose={(row) => comparing.choose(row)}
        />
        <button
          type="button"
          class="button plain"
          title="Swap A and B (\)"
          aria-label="Swap A and B"
          onClick={() => comparing.swap()}
        >
          <Icon name="swap" />
        </button>
        <Side
          name="B"
          rows={rows}
          chosen={comparing.b.value}
          choose={(row) => comparing.chooseOther(row)}
        />
        <Choice
          label="At the peak of"
          value={comparing.band}
          options={BANDS}
          testid="compare-band"
        />
        {comparing.picture.value === "curves" && (
          <AlignSwitch comparing={comparing} comparison={comparison} />
        )}
        {comparison && <CopyMarkdown comparing={comparing} />}
      </div>
      {comparison ? (
        <Both {...owners} comparison={comparison} />
      ) : (
        <Waiting comparing={comparing} />
      )}
    </div>
  );
}

/** Only one file is open. */
function Alone({ loader }: Uses<"loader">) {
  return (
    <div class="quiet">
      <h3>Compare two snapshots</h3>
      <p>
        Add a second snapshot: before/after a change, another rank, or a later step. Totals, curves
        and call stacks are compared. Stacks are matched even if line numbers moved.
      </p>
      <p class="compare-add">
        <OpenButton
          name="Add snapshots to compare with"
          class="primary"
          testid="compare-add"
          open={(files) => void loader.add(fromInput(files))}
        >
          Add a snapshot…
        </OpenButton>
      </p>
      <p>Or drop a snapshot or a folder anywhere on this page.</p>
    </div>
  );
}

function Waiting({ comparing }: { comparing: Comparing }) {
  const [a, b] = [comparing.a.value, comparing.b.value];
  const failure = comparing.failure.value;
  if (failure !== null) return <p class="quiet error">{failure}</p>;
  if (a !== null && a.file === b?.file && a.part === b.part) {
    return (
      <div class="quiet" data-testid="compare-pinned">
        <h3>{a.label} is A</h3>
        <p>Choose B in the list above, in the rows on the left, or with [ and ].</p>
      </div>
    );
  }
  return (
    <p class="quiet" aria-busy="true">
      {b === null ? "Reading" : "Comparing"}
    </p>
  );
}

interface SideProperties {
  name: "A" | "B";
  /** What the side is for. */
  use?: string;
  rows: readonly Row[];
  chosen: Row | null;
  choose: (row: Row) => void;
}

function Side({ name, use, rows, chosen, choose }: SideProperties) {
  return (
    <label class="field compare-side" data-side={name}>
      <span class="compare-key">{name}</span>
      {use}
      <span class="select small">
        <select
          data-testid={`compare-${name.toLowerCase()}`}
          title={chosen?.file.path}
          value={rows.findIndex((row) => row.file === chosen?.file && row.part === chosen?.part)}
          onChange={(event) => {
            const row = rows[Number(event.currentTarget.value)];
            if (row) choose(row);
          }}
        >
          {rows.map((row, index) => (
            <option key={`${row.file.planned.file}/${row.part}`} value={index}>
              {rowName(row)}
            </option>
          ))}
        </select>
        <Icon name="down" />
      </span>
    </label>
  );
}

const ALIGNS = { event: "event", time: "time", step: "step" } as const;

function AlignSwitch({
  comparing,
  comparison,
}: {
  comparing: Comparing;
  comparison: Comparison | null;
}) {
  const now = comparison && shownCurves(comparing, comparison).align;
  return (
    <fieldset class="segmented small" aria-label="Aligned by">
      {(comparison?.view.curves ?? []).map(({ align, missing }) => (
        <button
          key={align}
          type="button"
          aria-pressed={align === now}
          disabled={missing !== ""}
          title={missing === "" ? `Both start at their first ${align}` : missing}
          onClick={() => {
            comparing.align.value = align;
          }}
        >
          {ALIGNS[align]}
        </button>
      ))}
    </fieldset>
  );
}

/** The curves of the chosen alignment; by step, else by event, unless one was chosen. */
function shownCurves(comparing: Comparing, { view: { curves } }: Comparison): ComparedCurves {
  const wanted = comparing.align.value ?? "step";
  const found = curves.find(({ align, missing }) => align === wanted && missing === "");
  return (found ?? curves[0]) as ComparedCurves;
}

function CopyMarkdown({ comparing }: { comparing: Comparing }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const waiting = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(waiting);
  }, [copied]);
  return (
    <span class="toolbar-end">
      <button
        type="button"
        class="button plain"
        title="Copy the comparison for a pull request"
        data-testid="compare-markdown"
        onClick={() => void comparing.copyMarkdown().then(setCopied)}
      >
        {copied ? "Copied" : "Copy as Markdown"}
      </button>
    </span>
  );
}

type BothProperties = ViewUses<
  "selection" | "viewSelection" | "comparing" | "plots" | "appearance"
> & { comparison: Comparison };

function Both({ comparison, ...owners }: BothProperties) {
  const { selection, comparing } = owners;
  const { record, view } = comparison;
  return (
    <div class="compare-body" data-picture={comparing.picture.value}>
      {comparing.picture.value === "curves" ? (
        <Curves
          comparing={comparing}
          curves={shownCurves(comparing, comparison)}
          text={view.text}
          peaks={[record.a.event.text, record.b.event.text]}
        />
      ) : (
        <CompareFlame {...owners} />
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <section class="compare-totals" aria-label="Totals" tabIndex={0}>
        {record.causes.length > 0 && (
          <ul class="compare-findings" aria-label="Cause" data-testid="compare-cause">
            {record.causes.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
        {view.recording.length > 0 && <Recording rows={view.recording} />}
        <table class="grid" data-testid="compare-totals">
          <thead>
            <tr>
              <th scope="col">by category, at the peak</th>
              <th scope="col" data-number="true">
                A
              </th>
              <th scope="col" data-number="true">
                B
              </th>
              <th scope="col" data-number="true" data-column="change">
                change
              </th>
              <th scope="col" data-number="true" data-column="percent">
                %
              </th>
            </tr>
          </thead>
          <Group rows={view.categories} unchanged={view.categoriesUnchanged} />
          <tbody>
            <tr class="compare-heading">
              <th scope="colgroup" colSpan={5}>
                totals
              </th>
            </tr>
          </tbody>
          <Group rows={view.totals} unchanged={view.totalsUnchanged} />
        </table>
        {record.findings.new.length + record.findings.gone.length > 0 && (
          <ul class="compare-findings" aria-label="Findings of one side only">
            <OneSided findings={record.findings.new} labels={view.newLabels} isNew />
            <OneSided findings={record.findings.gone} labels={view.goneLabels} isNew={false} />
          </ul>
        )}
      </section>
      <Stacks selection={selection} comparing={comparing} />
    </div>
  );
}

interface OneSidedProperties {
  findings: readonly SideFinding[];
  /** The kind of each finding in words. */
  labels: readonly string[];
  /** Whether only B has them. */
  isNew: boolean;
}

/** Findings of one side only. */
function OneSided({ findings, labels, isNew }: OneSidedProperties) {
  return (
    <>
      {findings.map(({ title, text, bytes }, index) => (
        <li key={text} data-new={isNew} data-value={bytes.raw}>
          <p class="compare-side">
            <strong>{isNew ? "Only in B" : "Only in A"}</strong> {labels[index]}
          </p>
          <p class="finding-name">{title}</p>
          <p>{text}</p>
        </li>
      ))}
    </>
  );
}
