// All blocks: sorted and filtered by the worker, a page at a time.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { BlockLine, BlockSort, BlockTable } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Icon } from "../ui/icons.js";
import { resource } from "./resource.js";
import { copyTable, saveTable } from "./save.js";
import { type Column, Table } from "./table.js";
import type { ViewProperties } from "./ui.js";

const CATEGORIES = [
  "",
  "parameter",
  "gradient",
  "optimizer_state",
  "buffer",
  "input",
  "activation",
  "temporary",
  "workspace",
  "communication",
  "unknown",
];

/**
 * What is asked of the worker, beside the search, the cursor and the flame graph that all views
 * share.
 */
function open(session: Session) {
  const { linked } = session;
  const sort = signal<BlockSort>("size");
  const descending = signal(true);
  const category = signal("");
  const atCursor = signal(false);
  const inSight = signal({ from: 0, count: 60 });
  const table = (): BlockTable => {
    const node = linked.node.value;
    return {
      text: linked.search.value,
      category: category.value,
      liveAt: atCursor.value ? (linked.cursor.value ?? -1) : null,
      node: node && [node.flame, node.node],
      sort: sort.value,
      descending: descending.value,
    };
  };
  const page = resource(session, "blocks", () => {
    const near = session.selected.value?.block ?? null;
    return { blocks: { table: table(), ...inSight.value, near } };
  });
  const ask = (from: number, count: number) => {
    const now = inSight.peek();
    if (now.from !== from || now.count !== count) inSight.value = { from, count };
  };
  return { sort, descending, category, atCursor, table, page, ask };
}

export function Blocks({ session, workspace }: ViewProperties) {
  const state = useMemo(() => open(session), [session]);
  useEffect(() => () => state.page.stop(), [state]);
  const { sort, descending, category, atCursor, table, page, ask } = state;
  const { linked } = session;
  const shown = page.value.value;
  const by = (key: BlockSort) => ({
    sort: () => {
      descending.value = sort.peek() === key ? !descending.peek() : true;
      sort.value = key;
    },
    sorted:
      sort.value !== key
        ? ("none" as const)
        : descending.value
          ? ("descending" as const)
          : ("ascending" as const),
  });
  const swatch = (color: number) => session.swatch(color);
  const columns: Column<BlockLine>[] = [
    {
      key: "size",
      title: "requested",
      number: true,
      width: "80px",
      ...by("size"),
      cell: (r) => r.bytes.text,
      words: (r) => r.bytes.exact,
      raw: (r) => r.bytes.raw,
    },
    {
      key: "blockSize",
      title: "block size",
      number: true,
      width: "80px",
      ...by("blockSize"),
      cell: (r) => r.blockBytes.text,
      words: (r) => r.blockBytes.exact,
      raw: (r) => r.blockBytes.raw,
    },
    {
      key: "site",
      title: "call site",
      width: "minmax(220px, 1fr)",
      ...by("site"),
      words: (r) => r.site,
      cell: (r) => (
        <>
          <span class="swatch" style={{ background: swatch(r.color) }} /> {r.site}
        </>
      ),
    },
    {
      key: "category",
      title: "category",
      width: "112px",
      ...by("category"),
      cell: (r) => r.category,
    },
    {
      key: "allocated",
      title: "allocated",
      number: true,
      width: "96px",
      ...by("allocated"),
      cell: (r) => r.allocated,
    },
    {
      key: "freed",
      title: "freed",
      number: true,
      width: "104px",
      ...by("freed"),
      cell: (r) => r.freed,
    },
    {
      key: "lifetime",
      title: "lifetime",
      number: true,
      width: "88px",
      ...by("lifetime"),
      cell: (r) => r.lifetime.text,
      words: (r) => r.lifetime.exact,
      raw: (r) => r.lifetime.raw,
    },
    { key: "address", title: "address", width: "152px", ...by("address"), cell: (r) => r.address },
    {
      key: "stream",
      title: "stream",
      number: true,
      width: "44px",
      ...by("stream"),
      cell: (r) => r.stream.text,
      words: (r) => r.stream.exact,
      raw: (r) => r.stream.raw,
    },
  ];
  const node = linked.node.value;
  return (
    <div class="blocks">
      <div class="toolbar">
        <span data-testid="blocks-text">{shown?.text}</span>
        <label class="field">
          <span>Category</span>
          <span class="select small">
            <select
              value={category.value}
              aria-label="Category"
              onChange={(event) => {
                category.value = event.currentTarget.value;
              }}
            >
              {CATEGORIES.map((name) => (
                <option key={name} value={name}>
                  {name === "" ? "all" : name.replaceAll("_", " ")}
                </option>
              ))}
            </select>
            <Icon name="down" />
          </span>
        </label>
        <button
          type="button"
          class="toggle"
          aria-pressed={atCursor.value}
          title="Only what is live at the time cursor"
          onClick={() => {
            atCursor.value = !atCursor.peek();
          }}
        >
          live at cursor
        </button>
        {node && (
          <button
            type="button"
            class="chip"
            title="Show the blocks of all call stacks"
            onClick={() => {
              linked.node.value = null;
            }}
          >
            below {node.title} ×
          </button>
        )}
        <span class="toolbar-end">
          <button
            type="button"
            class="button plain"
            onClick={() => void copyTable(session, { blocks: { table: table() } })}
          >
            Copy CSV
          </button>
          <button
            type="button"
            class="button plain"
            onClick={() => void saveTable(session, { blocks: { table: table() } }, "csv", "blocks")}
          >
            CSV
          </button>
          <button
            type="button"
            class="button plain"
            onClick={() =>
              void saveTable(session, { blocks: { table: table() } }, "json", "blocks")
            }
          >
            JSON
          </button>
        </span>
      </div>
      <Table
        label="Blocks"
        testid="blocks-table"
        columns={columns}
        total={shown?.total ?? 0}
        from={shown?.from ?? 0}
        rows={shown?.rows ?? []}
        rowKey={(row) => row.block}
        current={session.selected.value?.block ?? null}
        reveal={shown?.at ?? null}
        ask={ask}
        open={(row) => void workspace.showBlock(row.block)}
      />
    </div>
  );
}
