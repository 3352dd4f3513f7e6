// The table of all blocks. The worker sorts and filters it and sends one page at a time.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import {
  type BlockRow,
  type BlockSort,
  type BlockTable,
  CATEGORIES,
} from "../../generated/protocol.js";
import type { Uses } from "../../stores.js";
import { Icon } from "../../ui/icons.js";
import { copyTable, saveTable } from "../../views/save.js";
import { type Column, sortable, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";

/** The table's own choices. Search, cursor and flame graph node are shared with other views. */
function open({
  selection,
  viewSelection,
  filters,
}: Uses<"selection" | "viewSelection" | "filters">) {
  const sort = signal<BlockSort>("size");
  const descending = signal(true);
  const category = signal("");
  const atCursor = signal(false);
  const visible = signal({ from: 0, count: 60 });
  const table = (): BlockTable => {
    return {
      text: filters.text.value,
      category: category.value,
      liveAt: atCursor.value ? (viewSelection.cursor.value ?? -1) : null,
      sort: sort.value,
      descending: descending.value,
    };
  };
  const page = resource(selection, "blocks", () => {
    const near = selection.block.value?.block ?? null;
    return { blocks: { table: table(), ...visible.value, near } };
  });
  const ask = (from: number, count: number) => {
    const now = visible.peek();
    if (now.from !== from || now.count !== count) visible.value = { from, count };
  };
  return { sort, descending, category, atCursor, table, page, ask };
}

/** The column of what the file beside the snapshot says, or sizes tell. */
const tensor: Column<BlockRow> = {
  key: "tensor",
  title: "tensor or shape",
  width: "minmax(260px, 1fr)",
  words: (r) => r.view.tensor,
  cell: (r) => r.view.tensor,
};

type BlocksProperties = ViewUses<
  "selection" | "viewSelection" | "filters" | "appearance" | "status" | "cards"
>;

export function Blocks(properties: BlocksProperties) {
  const { selection, viewSelection, filters, appearance, status, cards } = properties;
  const state = useMemo(
    () => open({ selection, viewSelection, filters }),
    [selection, viewSelection, filters],
  );
  useEffect(() => () => state.page.stop(), [state]);
  const { sort, descending, category, atCursor, table, page, ask } = state;
  const shown = page.value.value;
  const by = (key: BlockSort) => sortable(sort, descending, key, true);
  const swatch = (color: number) => appearance.swatch(color);
  const columns: Column<BlockRow>[] = [
    {
      key: "size",
      title: "requested",
      number: true,
      width: "80px",
      ...by("size"),
      cell: (r) => r.record.bytes.text,
      words: (r) => r.record.bytes.exact,
      raw: (r) => r.record.bytes.raw,
    },
    {
      key: "blockSize",
      title: "block size",
      number: true,
      width: "80px",
      ...by("blockSize"),
      cell: (r) => r.record.block_bytes.text,
      words: (r) => r.record.block_bytes.exact,
      raw: (r) => r.record.block_bytes.raw,
    },
    {
      key: "site",
      title: "call site",
      width: "minmax(220px, 1fr)",
      ...by("site"),
      words: (r) => r.record.site,
      cell: (r) => (
        <>
          <span class="swatch" style={{ background: swatch(r.view.color) }} /> {r.record.site}
        </>
      ),
    },
    ...(shown?.hasTensors ? [tensor] : []),
    {
      key: "category",
      title: "category",
      width: "112px",
      ...by("category"),
      cell: (r) => r.record.category,
    },
    {
      key: "allocated",
      title: "allocated",
      number: true,
      width: "96px",
      ...by("allocated"),
      cell: (r) => r.view.allocated,
    },
    {
      key: "freed",
      title: "freed",
      number: true,
      width: "104px",
      ...by("freed"),
      cell: (r) => r.view.freed,
    },
    {
      key: "lifetime",
      title: "lifetime",
      number: true,
      width: "88px",
      ...by("lifetime"),
      cell: (r) => r.record.lifetime.text,
      words: (r) => r.view.life,
      raw: (r) => r.record.lifetime.raw,
    },
    {
      key: "address",
      title: "address",
      width: "152px",
      ...by("address"),
      cell: (r) => r.view.place,
    },
    {
      key: "stream",
      title: "stream",
      number: true,
      width: "44px",
      ...by("stream"),
      cell: (r) => r.view.handle.text,
      words: (r) => r.view.handle.exact,
      raw: (r) => r.view.handle.raw,
    },
  ];
  const blocks = () => ({ blocks: { table: table() } });
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
              {["", ...CATEGORIES].map((name) => (
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
          title="Only blocks that are live at the time cursor"
          onClick={() => {
            atCursor.value = !atCursor.peek();
          }}
        >
          live at cursor
        </button>
        <span class="toolbar-end">
          <button
            type="button"
            class="button plain"
            onClick={() => void copyTable({ selection, status }, blocks())}
          >
            Copy CSV
          </button>
          <button
            type="button"
            class="button plain"
            onClick={() => void saveTable(selection, blocks(), "csv", "blocks")}
          >
            CSV
          </button>
          <button
            type="button"
            class="button plain"
            onClick={() => void saveTable(selection, blocks(), "json", "blocks")}
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
        rowKey={(row) => row.view.block}
        current={selection.block.value?.block ?? null}
        reveal={shown?.at ?? null}
        ask={ask}
        open={(row) => void cards.showBlock(row.view.block)}
      />
    </div>
  );
}
