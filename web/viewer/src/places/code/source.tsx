// Source files with the memory of each line beside it.

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { isCode, type LineState } from "../../client/code-files.js";
import { fileName } from "../../client/files.js";
import { resource } from "../../client/resource.js";
import { termsText } from "../../filters.js";
import type { SourceRow } from "../../generated/protocol.js";
import { Icon } from "../../ui/icons.js";
import { OpenButton } from "../../ui/open-button.js";
import { Toggle } from "../../views/controls.js";
import { type Column, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";
import { type Line, linesOf, nearOf, notesOf } from "./source-lines.js";
import { Places } from "./source-places.js";

type SourceOwners = ViewUses<
  "selection" | "viewSelection" | "filters" | "groups" | "sources" | "code" | "status"
>;

/** A narrower view has only the bytes at the peak beside a line, in CSS pixels. */
const NARROW = 560;
function open({ selection, viewSelection, filters }: SourceOwners) {
  const calls = signal(false);
  const all = signal(true);
  const visible = signal({ from: 0, count: 80 });
  const isNarrow = signal(false);
  const chosen = signal<readonly string[]>([]);
  const page = resource(selection, "source", () => {
    const others = filters.terms.value.filter((term) => !chosen.value.includes(term));
    const spec = {
      text: [termsText(others), viewSelection.search.value].join(" ").trim(),
      event: viewSelection.cursor.value,
      hideFramework: viewSelection.hideFramework.value,
      file: viewSelection.source.value?.file ?? "",
      own: !calls.value,
    };
    return { source: { spec } };
  });
  const ask = (from: number, count: number) => {
    const now = visible.peek();
    if (now.from !== from || now.count !== count) visible.value = { from, count };
  };
  return { calls, all, visible, isNarrow, chosen, page, ask };
}

export function Source(owners: SourceOwners) {
  const { selection, viewSelection, filters, groups, sources, code } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.page.stop(), [state]);
  const { calls, all, visible, isNarrow, chosen, page, ask } = state;
  const box = useRef<HTMLElement>(null);
  const shown = page.value.value;
  const place = viewSelection.source.value;
  const text = shown && shown.file !== "" && shown.text === null ? sources.text(shown.file) : null;
  const isOld = sources.isOld(text);
  const every = useMemo(() => (shown ? linesOf(shown, text, isOld) : []), [shown, text, isOld]);
  const lines = useMemo(() => (all.value ? every : nearOf(every)), [every, all.value]);
  const hasLines = shown !== null && shown.file !== "";
  useEffect(() => {
    const element = box.current;
    if (!element || !hasLines) return;
    const size = new ResizeObserver(() => {
      isNarrow.value = element.clientWidth < NARROW;
    });
    size.observe(element);
    return () => size.disconnect();
  }, [hasLines, isNarrow]);
  const choose = (terms: readonly string[]) => {
    const others = filters.terms.peek().filter((term) => !chosen.peek().includes(term));
    chosen.value = terms;
    groups.choose([...others, ...terms]);
  };
  const to = (file: string, line: number) => {
    viewSelection.source.value = { file, line };
  };
  if (!shown) return <p class="quiet" aria-busy="true" />;
  if (shown.file === "")
    return (
      <div class="quiet">
        <p>No call stack has a line of source.</p>
        {shown.notes.map((note) => (
          <p key={note} class="dim">
            {note}
          </p>
        ))}
      </div>
    );
  const wanted = place?.file === shown.file ? place.line : 0;
  const most = every.find(({ row }) => row?.shares[0] === 1) ?? every.find(({ row }) => row);
  const reveal = lines.findIndex(({ line }) => line === (wanted || most?.line));
  const { from, count } = visible.value;
  const until = selection.trace.value?.device?.until ?? null;
  const notes = [...notesOf(shown, text, every, until), ...shown.notes];
  return (
    <section class="source" aria-label="Source" ref={box}>
      <header class="source-head">
        <h3 title={shown.file}>{fileName(shown.file)}</h3>
        <span class="source-path" title={shown.file}>
          {shown.file}
        </span>
        <Toggle
          label="with calls"
          title="Count all blocks whose call stack goes through a line, not only its own"
          value={calls}
        />
        <Toggle label="all lines" title="Show lines without memory, too" value={all} />
        <OpenButton
          name="Choose the folder with the program's source"
          class="plain"
          folder
          testid="open-source"
          open={(files) => code.add(codeOf(files))}
        >
          <Icon name="folder" />
          Source folder
        </OpenButton>
      </header>
      {notes.length > 0 && (
        <p class="source-notes" data-testid="source-notes">
          {notes.join(" ")}
        </p>
      )}
      <div class="source-body">
        <Places page={shown} groups={groups} to={to} choose={choose} />
        <Table
          label={`Source of ${shown.file} with the memory of each line`}
          testid="source-table"
          columns={columnsOf(every, calls.value, isNarrow.value)}
          total={lines.length}
          from={from}
          rows={lines.slice(from, from + count)}
          rowKey={({ line }) => line}
          current={wanted || null}
          reveal={reveal < 0 ? null : reveal}
          ask={ask}
          open={({ line, row }) => {
            to(shown.file, line);
            if (row && row.terms.length > 0) choose(row.terms);
          }}
        />
      </div>
    </section>
  );
}

/** The source files of a folder picker. */
const codeOf = (files: Iterable<File>) =>
  [...files]
    .map((file) => ({ path: file.webkitRelativePath || file.name, file }))
    .filter(({ path }) => isCode(path));

const MARKS: Partial<Record<LineState, [mark: string, title: string]>> = {
  differs: ["!", "The file has another text here. The recorded one is shown."],
  missing: ["!", "The file has no such line in the recorded function."],
  unsure: ["?", "The file may have been changed after the recording."],
};

function columnsOf(lines: readonly Line[], calls: boolean, isNarrow: boolean): Column<Line>[] {
  const rows = lines.flatMap(({ row }) => row ?? []);
  const number = (
    key: string,
    title: string,
    width: string,
    of: (row: SourceRow) => SourceRow["cursor"],
    share?: number,
  ): Column<Line> => ({
    key,
    title,
    number: true,
    width,
    cell: ({ row }) => {
      const quantity = row && of(row);
      return (
        quantity &&
        quantity.raw !== "0" && (
          <>
            {share !== undefined && (
              <span class="source-bar" style={{ width: `${(row.shares[share] ?? 0) * 100}%` }} />
            )}
            {quantity.text}
          </>
        )
      );
    },
    words: ({ row }) => (row && of(row)?.exact) ?? "",
    raw: ({ row }) => (row && of(row)?.raw) ?? null,
  });
  const has = (of: (row: SourceRow) => unknown) => rows.some((row) => of(row) !== null);
  const own = calls ? "" : "own ";
  const others = [
    ...(has(({ cursor }) => cursor)
      ? [number("cursor", "at the cursor", "88px", ({ cursor }) => cursor, 1)]
      : []),
    ...(has(({ growth }) => growth)
      ? [number("growth", "per step", "84px", ({ growth }) => growth, 2)]
      : []),
    number("blocks", "blocks", "52px", ({ blocks }) => blocks),
  ];
  return [
    number("peak", `${own}at the peak`, "104px", ({ peak }) => peak, 0),
    ...(isNarrow ? [] : others),
    {
      key: "line",
      title: "line",
      number: true,
      width: "44px",
      cell: ({ line, state, row }) => {
        const [mark, title] = (row && MARKS[state]) ?? [];
        return (
          <>
            {mark && (
              <span class="source-mark" title={title} data-state={state}>
                {mark}
              </span>
            )}
            {line}
          </>
        );
      },
      raw: ({ line }) => line,
    },
    {
      key: "text",
      title: "source",
      width: "minmax(300px, 1fr)",
      words: ({ text, row }) => (text.trim() || row?.label) ?? "",
      cell: ({ text, state, row }) =>
        text === "" && row ? (
          <span class="source-in">in {row.label}</span>
        ) : (
          <code class="source-text" data-state={state} data-bare={row === null}>
            {text}
          </code>
        ),
    },
  ];
}
