// What holds the memory: variables and objects as a tree table, and what dropping them frees.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { DropLine, HolderLine, Quantity } from "../../generated/protocol.js";
import { type Column, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";
import { TreeName } from "./tree-name.js";

type HolderOwners = ViewUses<"selection" | "viewSelection" | "filters" | "groups" | "appearance">;

function open({ selection, viewSelection }: HolderOwners) {
  const chosen = signal<HolderLine | null>(null);
  const table = resource(selection, "holders", () => ({
    holders: { event: viewSelection.cursor.value },
  }));
  return { chosen, table };
}

export function Holders(owners: HolderOwners) {
  const { selection, filters, groups, appearance } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.table.stop(), [state]);
  const { chosen, table } = state;
  const shown = table.value.value;
  if (shown === null) return null;
  /** Chooses the blocks of a holder in place of those of the one before. */
  const choose = (row: HolderLine) => {
    if (row.terms.length === 0) return;
    const own = chosen.peek()?.terms ?? [];
    const others = filters.terms.peek().filter((term) => !own.includes(term));
    chosen.value = row;
    groups.choose([...others, ...row.terms]);
  };
  const isChosen = chosen.value !== null && groups.isChosen(chosen.value.terms);
  const number = (
    key: string,
    title: string,
    width: string,
    of: (row: HolderLine) => Quantity | null,
  ): Column<HolderLine> => ({
    key,
    title,
    number: true,
    width,
    cell: (row) => of(row)?.text ?? "",
    words: (row) => of(row)?.exact ?? "",
    raw: (row) => of(row)?.raw ?? null,
  });
  const columns: Column<HolderLine>[] = [
    {
      key: "holder",
      title: "held by",
      width: "minmax(240px, 1fr)",
      words: (row) => row.label,
      cell: (row) => (
        <TreeName label={row.label} depth={row.depth} open={null} toggle={() => undefined} />
      ),
    },
    number("total", shown.moment, "76px", (row) => row.total),
    { key: "percent", title: "%", number: true, width: "54px", cell: (row) => row.percent },
    number("end", "at end", "76px", (row) => row.end),
    number("frees", shown.frees, "92px", (row) => row.frees),
    {
      key: "categories",
      title: "categories",
      width: "84px",
      words: (row) => row.categories,
      cell: (row) => (
        <span class="module-bar" role="img" aria-label={row.categories}>
          {row.shares.map((share, index) => (
            <span
              key={row.colors[index]}
              style={{
                width: `${share * 100}%`,
                background: appearance.swatch(row.colors[index] ?? 0),
              }}
            />
          ))}
        </span>
      ),
    },
    number("blocks", "blocks", "56px", (row) => row.blocks),
  ];
  return (
    <section class="modules" aria-label="Holders" data-testid="holders">
      {shown.text.length > 0 && <p class="modules-text">{shown.text.join(" ")}</p>}
      {shown.rows.length > 0 && (
        <div class="modules-body">
          <Table
            label="Memory by holder"
            testid="holders-table"
            columns={columns}
            total={shown.rows.length}
            from={0}
            rows={shown.rows}
            rowKey={(row) => row.row}
            current={isChosen ? (chosen.value?.row ?? null) : null}
            reveal={null}
            ask={() => undefined}
            open={choose}
          />
        </div>
      )}
      {shown.drops.length > 0 && <Drops frees={shown.frees} drops={shown.drops} />}
    </section>
  );
}

/** What dropping references frees at the end, as a tree. */
function Drops({ frees, drops }: { frees: string; drops: readonly DropLine[] }) {
  return (
    <section class="drops" aria-label={`Dropping ${frees}`} data-testid="drops">
      <h3>Dropping {frees}, at the end</h3>
      <ul>
        {drops.map((drop, index) => (
          <li key={index} title={`${drop.bytes.exact}, ${drop.blocks.exact}`}>
            <TreeName label={drop.label} depth={drop.depth} open={null} toggle={() => undefined} />
            <span class="num" data-value={drop.bytes.raw}>
              {drop.bytes.text}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
