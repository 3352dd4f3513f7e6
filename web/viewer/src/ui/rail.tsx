// The list of ranks: one row per file, or per snapshot in a file. Rows show at once and fill in.

import { Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Row, Run } from "../run.js";
import type { Uses } from "../stores.js";
import { Chunks } from "./chunks.js";
import { MiddleCut } from "./middle-cut.js";

const STEPS: Record<string, number> = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 };

type RailProperties = Uses<"runs" | "selection" | "workspace"> & { run: Run };

export function Rail({ runs, selection, workspace, run }: RailProperties) {
  const rows = runs.rows.value;
  const list = useRef<HTMLDivElement>(null);
  const focused = rows.findIndex((row) => selection.isFocused(row));

  // Scrolls the focused row into view. It takes the keyboard focus if the list has it.
  useEffect(() => {
    if (focused < 0) return;
    const row = list.current?.querySelector<HTMLElement>("[role=option][aria-selected=true]");
    row?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (list.current?.matches(":focus-within")) row?.focus({ preventScroll: true });
  }, [focused]);

  const keydown = (event: KeyboardEvent) => {
    const by = STEPS[event.key];
    if (by === undefined || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey)
      return;
    event.preventDefault();
    selection.step(by);
  };

  return (
    <nav class="rail" part="rail" aria-label="Ranks">
      <h2 class="rail-title">
        {run.countText}
        <RunProgress runs={runs} all={run.files.length} />
      </h2>
      <div
        class="rail-list"
        role="listbox"
        aria-label={run.countText}
        ref={list}
        onKeyDown={keydown}
      >
        <Chunks
          of="list"
          count={rows.length}
          pinned={Math.max(focused, 0)}
          scroller={list}
          row={(index) => {
            const row = rows[index];
            if (!row) return null;
            const { group } = row.file.planned;
            return (
              <Fragment key={`${row.file.planned.file}/${row.part}`}>
                {group !== "" && group !== rows[index - 1]?.file.planned.group && (
                  <div class="rail-group" role="presentation" title={group}>
                    {group}
                  </div>
                )}
                <RankRow
                  selection={selection}
                  workspace={workspace}
                  compiled={runs.modules.compiled.value}
                  row={row}
                  place={index + 1}
                  all={rows.length}
                  selected={index === focused}
                  reachable={index === Math.max(focused, 0)}
                />
              </Fragment>
            );
          }}
        />
      </div>
      {run.skippedText && (
        <p class="rail-skipped" data-testid="skipped-files" data-value={run.skippedText.value}>
          {run.skippedText.text}
        </p>
      )}
    </nav>
  );
}

/** The number of files that are read, until all are. */
function RunProgress({ runs, all }: Uses<"runs"> & { all: number }) {
  const left = runs.tally.value.unread;
  if (left === 0 || all === 1) return null;
  return (
    <span class="rail-progress" role="status">
      {all - left} of {all} read
    </span>
  );
}

type RankRowProperties = Uses<"selection" | "workspace"> & {
  row: Row;
  /** Whether the worker's module is compiled. */
  compiled: boolean;
  /** Its place among `all` rows. */
  place: number;
  all: number;
  selected: boolean;
  reachable: boolean;
};

function RankRow(properties: RankRowProperties) {
  const { selection, workspace, row, compiled, place, all, selected, reachable } = properties;
  const { file } = row;
  const { state } = file.load.value;
  const views = workspace.value;
  const look = () => selection.look(row);
  return (
    <div
      class="rank"
      role="option"
      aria-selected={selected}
      aria-posinset={place}
      aria-setsize={all}
      tabIndex={reachable ? 0 : -1}
      title={file.path}
      data-testid="rank-row"
      data-path={file.path}
      data-rank={file.planned.rank ?? ""}
      data-part={row.part}
      data-state={state}
      onClick={look}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        look();
      }}
    >
      <span class="rank-label">
        {file.planned.rank !== null && <span class="visually-hidden">rank </span>}
        <MiddleCut text={row.label} />
      </span>
      <RankStatus row={row} compiled={compiled} />
      {views && <views.ui.PinMark row={row} />}
      {views && <views.ui.CloseMark row={row} />}
      {views && <views.ui.RailBar row={row} />}
    </div>
  );
}

function RankStatus({ row, compiled }: { row: Row; compiled: boolean }) {
  const { file, part } = row;
  const load = file.load.value;
  if (load.state === "queued") {
    const title = compiled ? undefined : "Waiting for the viewer to load";
    return (
      <span class="rank-note" title={title}>
        {compiled ? "queued" : "waiting"}
      </span>
    );
  }
  if (load.state === "error") {
    return (
      <span class="rank-error" title={load.failure.message}>
        {load.failure.message}
      </span>
    );
  }
  if (load.state === "loading") return <Reading row={row} />;
  if (load.state === "unread") {
    const peak = file.cards.value?.[part]?.bands[0]?.peak;
    if (!peak) return <span class="rank-note">{file.planned.size}</span>;
    return (
      <span class="rank-peak" data-value={peak.raw} title={`peak ${peak.exact}; not read`}>
        {peak.text}
      </span>
    );
  }
  const { peak, warnings } = load.loaded.parts[part] ?? { peak: null, warnings: [] };
  return (
    <>
      {warnings.length > 0 && (
        <span class="dot" title={warnings.map(({ message }) => message).join("\n")} />
      )}
      {peak ? (
        <span class="rank-peak" data-value={peak.raw} title={`peak ${peak.exact}`}>
          {peak.text}
        </span>
      ) : (
        <span class="rank-note">no history</span>
      )}
      {file.progress.value !== null && <Bar fraction={file.progress.value.fraction} />}
    </>
  );
}

function Reading({ row }: { row: Row }) {
  const progress = row.file.progress.value;
  return (
    <>
      <span class="rank-note">{progress?.text ?? row.file.planned.size}</span>
      <Bar fraction={progress?.fraction ?? 0} />
    </>
  );
}

function Bar({ fraction }: { fraction: number }) {
  return <span class="bar" style={{ "--fraction": fraction }} />;
}
