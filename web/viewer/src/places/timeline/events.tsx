// The table of the allocator's events, which follows the time cursor.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { EventFilter, EventRow } from "../../generated/protocol.js";
import type { Uses } from "../../stores.js";
import { Icon } from "../../ui/icons.js";
import { saveTable } from "../../views/save.js";
import { type Column, Table } from "../../views/table.js";
import type { ViewUses } from "../../views/workspace.js";

function open({
  selection,
  viewSelection,
  filters,
}: Uses<"selection" | "viewSelection" | "filters">) {
  const action = signal("");
  const visible = signal({ from: 0, count: 60 });
  const filter = (): EventFilter => ({
    actions: action.value === "" ? [] : [action.value],
    text: filters.text.value,
  });
  const page = resource(selection, "events", () => {
    const cursor = viewSelection.cursor.value;
    const near = cursor !== null && cursor >= 0 ? cursor : null;
    return { events: { filter: filter(), ...visible.value, near } };
  });
  const ask = (from: number, count: number) => {
    const now = visible.peek();
    if (now.from !== from || now.count !== count) visible.value = { from, count };
  };
  return { action, filter, page, ask };
}

type EventsProperties = ViewUses<
  "selection" | "viewSelection" | "filters" | "appearance" | "steps"
>;

export function Events({ selection, viewSelection, filters, appearance, steps }: EventsProperties) {
  const state = useMemo(
    () => open({ selection, viewSelection, filters }),
    [selection, viewSelection, filters],
  );
  useEffect(() => () => state.page.stop(), [state]);
  const { action, filter, page, ask } = state;
  const { cursor } = viewSelection;
  const shown = page.value.value;
  // The reason for an empty history.
  const device = selection.trace.value?.device;
  const note = device?.events.raw === "0" ? device.note : null;
  const swatch = (color: number) => appearance.swatch(color);
  const columns: Column<EventRow>[] = [
    {
      key: "event",
      title: "event",
      number: true,
      width: "84px",
      cell: (r) => r.record.index.text,
      raw: (r) => r.record.index.raw,
    },
    { key: "time", title: "time", number: true, width: "104px", cell: (r) => r.view.time },
    { key: "action", title: "action", width: "128px", cell: (r) => r.record.action },
    {
      key: "size",
      title: "size",
      number: true,
      width: "92px",
      cell: (r) => r.record.size.text,
      raw: (r) => r.record.size.raw,
    },
    {
      key: "live",
      title: "total after",
      number: true,
      width: "124px",
      cell: (r) => r.view.live.text,
      raw: (r) => r.view.live.raw,
    },
    { key: "address", title: "address", width: "148px", cell: (r) => r.view.place },
    {
      key: "site",
      title: "call site",
      width: "minmax(180px, 1fr)",
      words: (r) => r.view.label,
      cell: (r) => (
        <>
          <span class="swatch" style={{ background: swatch(r.view.color) }} /> {r.view.label}
        </>
      ),
    },
  ];
  const openRow = (row: EventRow) => {
    const event = Number(row.record.index.raw);
    cursor.value = event;
    const { target } = selection;
    if (row.view.block === null || !target) return;
    void target.client.block(target.target, row.view.block).then((detail) => {
      if (detail && cursor.peek() === event) selection.select(detail);
    });
  };
  const save = (form: "csv" | "json") =>
    void saveTable(selection, { events: { filter: filter() } }, form, "events");
  return (
    <div class="events">
      <div class="toolbar">
        <span data-testid="events-text">{shown?.text}</span>
        <label class="field">
          <span>Action</span>
          <span class="select small">
            <select
              value={action.value}
              aria-label="Action"
              onChange={(event) => {
                action.value = event.currentTarget.value;
              }}
            >
              <option value="">all</option>
              {(shown?.actions ?? []).map(({ key, label, text }) => (
                <option key={key} value={key}>
                  {label} ({text})
                </option>
              ))}
            </select>
            <Icon name="down" />
          </span>
        </label>
        <span class="stepper small">
          <button
            type="button"
            aria-label="Previous event"
            title="Previous event (,)"
            onClick={() => steps.goTo((cursor.peek() ?? 0) - 1)}
          >
            ‹
          </button>
          <button
            type="button"
            aria-label="Next event"
            title="Next event (.)"
            onClick={() => steps.goTo((cursor.peek() ?? -1) + 1)}
          >
            ›
          </button>
        </span>
        <span class="toolbar-end">
          <button type="button" class="button plain" onClick={() => save("csv")}>
            CSV
          </button>
          <button type="button" class="button plain" onClick={() => save("json")}>
            JSON
          </button>
        </span>
      </div>
      {note !== null && <p class="quiet">{note}</p>}
      <Table
        label="Events"
        testid="events-table"
        columns={columns}
        total={shown?.total ?? 0}
        from={shown?.from ?? 0}
        rows={shown?.rows ?? []}
        rowKey={(row) => Number(row.record.index.raw)}
        current={cursor.value}
        reveal={shown?.at ?? null}
        ask={ask}
        open={openRow}
      />
    </div>
  );
}
