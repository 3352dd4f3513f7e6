// The table of the code beside the flame graph: memory by module, file and line, and the callers
// and callees of the chosen line.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import { termsText } from "../../filters.js";
import type { CodeRow, CodeSort, CodeSpec, Sandwich } from "../../generated/protocol.js";
import { StackShares } from "../../views/card.js";
import { type Column, sortable, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";
import { TreeName } from "./tree-name.js";

type CodeOwners = ViewUses<"selection" | "viewSelection" | "filters" | "groups" | "appearance">;

/** The table's own choices. Filters that it sets itself do not filter it. */
function open({ selection, viewSelection, filters }: CodeOwners) {
  const sort = signal<CodeSort>("total");
  const descending = signal(true);
  const opened = signal<readonly string[]>([]);
  const visible = signal({ from: 0, count: 60 });
  const chosen = signal<CodeRow | null>(null);
  const spec = (): CodeSpec => {
    const own = chosen.value?.terms ?? [];
    const others = filters.terms.value.filter((term) => !own.includes(term));
    const text = [termsText(others), viewSelection.search.value].join(" ").trim();
    return {
      text,
      event: viewSelection.cursor.value,
      hideFramework: viewSelection.hideFramework.value,
      sort: sort.value,
      descending: descending.value,
      open: [...opened.value],
    };
  };
  const page = resource(selection, "code", () => ({ code: { spec: spec(), ...visible.value } }));
  const sandwich = resource(selection, "sandwich", () => {
    const frame = chosen.value?.frame ?? null;
    return frame === null ? null : { sandwich: { spec: spec(), frame } };
  });
  const toggle = ({ key }: CodeRow) => {
    const before = opened.peek();
    opened.value = before.includes(key) ? before.filter((one) => one !== key) : [...before, key];
  };
  const ask = (from: number, count: number) => {
    const now = visible.peek();
    if (now.from !== from || now.count !== count) visible.value = { from, count };
  };
  const stop = () => {
    page.stop();
    sandwich.stop();
  };
  return { sort, descending, chosen, page, sandwich, toggle, ask, stop };
}

export function Code(owners: CodeOwners) {
  const { selection, filters, groups, appearance } = owners;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the owners never change
  const state = useMemo(() => open(owners), [selection]);
  useEffect(() => () => state.stop(), [state]);
  const { sort, descending, chosen, page, sandwich, toggle, ask } = state;
  const shown = page.value.value;
  const around = sandwich.value.value;
  const choose = (row: CodeRow) => {
    const own = chosen.peek()?.terms ?? [];
    const others = filters.terms.peek().filter((term) => !own.includes(term));
    chosen.value = row;
    groups.choose([...others, ...row.terms]);
  };
  const isChosen = chosen.value !== null && groups.isChosen(chosen.value.terms);
  const by = (key: CodeSort) => sortable(sort, descending, key, key !== "name");
  const number = (
    key: CodeSort,
    title: string,
    width: string,
    of: (row: CodeRow) => CodeRow["total"] | null,
  ): Column<CodeRow> => ({
    key,
    title,
    number: true,
    width,
    ...by(key),
    cell: (row) => of(row)?.text ?? "",
    words: (row) => of(row)?.exact ?? "",
    raw: (row) => of(row)?.raw ?? null,
  });
  const columns: Column<CodeRow>[] = [
    {
      key: "name",
      title: "module, file, line",
      width: "minmax(150px, 1fr)",
      ...by("name"),
      words: (row) => row.title,
      cell: (row) => (
        <TreeName label={row.label} depth={row.depth} open={row.open} toggle={() => toggle(row)} />
      ),
    },
    number("total", "at peak", "76px", (row) => row.total),
    {
      key: "percent",
      title: "%",
      number: true,
      width: "54px",
      cell: (row) => row.percent,
    },
    number("own", "self", "76px", (row) => row.own),
    number("cursor", "at cursor", "76px", (row) => row.cursor),
    number("growth", "per step", "82px", (row) => row.growth),
    number("blocks", "blocks", "64px", (row) => row.blocks),
    number("largest", "largest", "76px", (row) => row.largest),
    {
      key: "category",
      title: "category",
      width: "104px",
      cell: (row) =>
        row.category !== "" && (
          <>
            <span class="swatch" style={{ background: appearance.swatch(row.color) }} />{" "}
            {row.category}
          </>
        ),
    },
  ];
  return (
    <section class="code" aria-label="Code">
      <Table
        label="Memory by module, file and line"
        testid="code-table"
        columns={columns}
        total={shown?.total ?? 0}
        from={shown?.from ?? 0}
        rows={shown?.rows ?? []}
        rowKey={(row) => row.place}
        current={isChosen ? (chosen.value?.place ?? null) : null}
        reveal={null}
        ask={ask}
        open={choose}
      />
      {isChosen && around && <Around appearance={appearance} groups={groups} around={around} />}
    </section>
  );
}

type AroundProperties = ViewUses<"appearance" | "groups"> & { around: Sandwich };

/** What calls the chosen line, and what it calls. */
function Around({ appearance, groups, around }: AroundProperties) {
  const { title, total, own, callers, callees } = around;
  return (
    <section class="sandwich" aria-label={`Callers and callees of ${title}`} data-testid="sandwich">
      <h4>
        <span>{title}</span>{" "}
        <span class="num" data-value={total.raw} title={total.exact}>
          {total.text}
        </span>{" "}
        <span class="dim" data-own={own.raw}>
          self {own.text}
        </span>
      </h4>
      <div class="sandwich-sides">
        {(
          [
            ["Callers", callers],
            ["Callees", callees],
          ] as const
        ).map(([name, rows]) => (
          <section key={name} aria-label={name}>
            <h5>{name}</h5>
            {rows.length === 0 ? (
              <p class="dim">none</p>
            ) : (
              <StackShares appearance={appearance} groups={groups} stacks={rows} />
            )}
          </section>
        ))}
      </div>
    </section>
  );
}
