// Memory by module, as a tree table: at the peak, at the cursor and in each phase.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { ModuleRow, Quantity } from "../../generated/protocol.js";
import { type Column, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";
import { TreeName } from "./tree-name.js";

type ModulesOwners = ViewUses<
  "runs" | "loader" | "selection" | "viewSelection" | "filters" | "groups" | "appearance"
>;

function open({ selection, viewSelection }: ModulesOwners) {
  const { cursor, openModules } = viewSelection;
  const visible = signal({ from: 0, count: 60 });
  const chosen = signal<ModuleRow | null>(null);
  const page = resource(selection, "modules", () => {
    const spec = { event: cursor.value, open: openModules.value && [...openModules.value] };
    return { modules: { spec, ...visible.value } };
  });
  const toggle = ({ node }: ModuleRow) => {
    const before = openModules.peek() ?? page.value.peek()?.open ?? [];
    openModules.value = before.includes(node)
      ? before.filter((one) => one !== node)
      : [...before, node];
  };
  const ask = (from: number, count: number) => {
    const now = visible.peek();
    if (now.from !== from || now.count !== count) visible.value = { from, count };
  };
  return { chosen, page, toggle, ask };
}

export function Modules(owners: ModulesOwners) {
  const { selection, viewSelection, filters, groups, appearance } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.page.stop(), [state]);
  const { chosen, page, toggle, ask } = state;
  const shown = page.value.value;
  /** Chooses the blocks of a module in place of those of the one before. */
  const choose = (row: ModuleRow) => {
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
    of: (row: ModuleRow) => Quantity | null | undefined,
  ): Column<ModuleRow> => ({
    key,
    title,
    number: true,
    width,
    cell: (row) => of(row)?.text ?? "",
    words: (row) => of(row)?.exact ?? "",
    raw: (row) => of(row)?.raw ?? null,
  });
  const phases = (shown?.phases ?? []).map((phase, index) =>
    number(phase, phase, "72px", (row) => row.phases[index]),
  );
  const columns: Column<ModuleRow>[] = [
    {
      key: "module",
      title: "module",
      width: "minmax(220px, 1fr)",
      words: (row) => row.title,
      cell: (row) => (
        <TreeName label={row.label} depth={row.depth} open={row.open} toggle={() => toggle(row)}>
          {row.note !== "" && <span class="module-note"> {row.note}</span>}
        </TreeName>
      ),
    },
    number("total", "at peak", "72px", (row) => row.total),
    { key: "percent", title: "%", number: true, width: "50px", cell: (row) => row.percent },
    ...(viewSelection.cursor.value === null
      ? []
      : [number("cursor", "at cursor", "72px", (row) => row.cursor)]),
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
    ...phases,
    number("blocks", "blocks", "46px", (row) => row.blocks),
  ];
  return (
    <section class="modules" aria-label="Modules">
      <p class="modules-text" data-testid="modules-text">
        {shown?.text.join(" ")}
      </p>
      <div class="modules-body">
        <Table
          label="Memory by module"
          testid="modules-table"
          columns={columns}
          total={shown?.total ?? 0}
          from={shown?.from ?? 0}
          rows={shown?.rows ?? []}
          rowKey={(row) => row.node}
          current={isChosen ? (chosen.value?.node ?? null) : null}
          reveal={null}
          ask={ask}
          open={choose}
          tree={{ depth: (row) => row.depth, open: (row) => row.open, toggle }}
        />
      </div>
    </section>
  );
}
