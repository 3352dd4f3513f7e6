// The call stacks that differ between two snapshots, largest change first.

import type { ComparedStack } from "../../generated/protocol.js";
import { type Column, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";

export function Stacks({ selection, comparing }: ViewUses<"selection" | "comparing">) {
  const page = comparing.stacks.value;
  const columns: Column<ComparedStack>[] = [
    {
      key: "change",
      title: "change",
      number: true,
      width: "92px",
      cell: ({ share, bytes: { change } }) => (
        <>
          <span
            class="compare-bar"
            data-side={share < 0 ? "A" : "B"}
            style={{ "--share": Math.abs(share) }}
          />
          <span title={change.exact}>{change.text}</span>
        </>
      ),
      raw: (r) => r.bytes.change.raw,
    },
    {
      key: "site",
      title: "call site",
      width: "minmax(140px, 2fr)",
      words: ({ site, via }) => (via === "" ? site : `${site} · ${via}`),
      cell: ({ site, via }) => (
        <>
          {site} <span class="dim">{via}</span>
        </>
      ),
    },
    {
      key: "a",
      title: "A",
      number: true,
      width: "76px",
      cell: (r) => r.bytes.a.text,
      raw: (r) => r.bytes.a.raw,
    },
    {
      key: "b",
      title: "B",
      number: true,
      width: "76px",
      cell: (r) => r.bytes.b.text,
      raw: (r) => r.bytes.b.raw,
    },
    {
      key: "blocks",
      title: "blocks",
      number: true,
      width: "46px",
      cell: (r) => r.blocks.text,
      raw: (r) => r.blocks.raw,
    },
    { key: "category", title: "category", width: "minmax(76px, 1fr)", cell: (r) => r.category },
    { key: "note", title: "", width: "76px", cell: (r) => <span class="dim">{r.note}</span> },
  ];
  return (
    <div class="compare-stacks">
      <div class="toolbar">
        <span data-testid="compare-stacks-text">{page?.text}</span>
        <label class="field toolbar-end">
          <span class="visually-hidden">Filter call stacks</span>
          <input
            type="search"
            placeholder="Filter: function, file"
            data-testid="compare-filter"
            value={comparing.text.value}
            onInput={(event) => {
              comparing.text.value = event.currentTarget.value;
            }}
          />
        </label>
        <fieldset class="compare-groups" aria-label="Groups of call stacks">
          {(page?.groups ?? []).map(({ key, text, count, change }) => (
            <button
              key={key}
              type="button"
              class="toggle"
              aria-pressed={comparing.group.value === key}
              data-group={key}
              data-value={count}
              title={change.exact}
              onClick={() => {
                comparing.group.value = comparing.group.peek() === key ? "" : key;
              }}
            >
              {text} {key !== "unchanged" && <span class="dim">{change.text}</span>}
            </button>
          ))}
        </fieldset>
      </div>
      <Table
        label="Call stacks by change at the peak"
        testid="compare-stacks"
        columns={columns}
        total={page?.total ?? 0}
        from={page?.from ?? 0}
        rows={page?.rows ?? []}
        rowKey={(row) => row.row}
        current={selection.card.value?.kind === "Change" ? comparing.chosen.value : null}
        reveal={null}
        ask={comparing.ask}
        open={(row) => void comparing.openStack(row)}
      />
    </div>
  );
}
