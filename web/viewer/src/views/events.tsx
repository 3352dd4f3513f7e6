// The trace as a list: the allocator's history, one row an event, going along with the time cursor.

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { EventFilter, EventRow } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Icon } from "../ui/icons.js";
import { resource } from "./resource.js";
import { saveTable } from "./save.js";
import { type Column, Table } from "./table.js";
import type { ViewProperties } from "./ui.js";

function open(session: Session) {
  const { linked } = session;
  const action = signal("");
  const inSight = signal({ from: 0, count: 60 });
  const filter = (): EventFilter => ({
    actions: action.value === "" ? [] : [action.value],
    text: linked.search.value,
  });
  const page = resource(session, "events", () => {
    const cursor = linked.cursor.value;
    const near = cursor !== null && cursor >= 0 ? cursor : null;
    return { events: { filter: filter(), ...inSight.value, near } };
  });
  const ask = (from: number, count: number) => {
    const now = inSight.peek();
    if (now.from !== from || now.count !== count) inSight.value = { from, count };
  };
  return { action, filter, page, ask };
}

export function Events({ session, workspace }: ViewProperties) {
  const state = useMemo(() => open(session), [session]);
  useEffect(() => () => state.page.stop(), [state]);
  const { action, filter, page, ask } = state;
  const { linked } = session;
  const shown = page.value.value;
  // Without a history there is a reason for it.
  const device = session.trace.value?.device;
  const note = device?.events.raw === "0" ? device.note : null;
  const swatch = (color: number) => session.swatch(color);
  const columns: Column<EventRow>[] = [
    {
      key: "event",
      title: "event",
      number: true,
      width: "84px",
      cell: (r) => r.label,
      raw: (r) => r.event,
    },
    { key: "time", title: "time", number: true, width: "104px", cell: (r) => r.time },
    { key: "action", title: "action", width: "128px", cell: (r) => r.action },
    {
      key: "size",
      title: "size",
      number: true,
      width: "92px",
      cell: (r) => r.bytes.text,
      raw: (r) => r.bytes.raw,
    },
    {
      key: "live",
      title: "requested after it",
      number: true,
      width: "124px",
      cell: (r) => r.live.text,
      raw: (r) => r.live.raw,
    },
    { key: "address", title: "address", width: "148px", cell: (r) => r.address },
    {
      key: "site",
      title: "call site",
      width: "minmax(180px, 1fr)",
      words: (r) => r.site,
      cell: (r) => (
        <>
          <span class="swatch" style={{ background: swatch(r.color) }} /> {r.site}
        </>
      ),
    },
  ];
  const openRow = (row: EventRow) => {
    linked.cursor.value = row.event;
    if (row.block !== null && session.asked) {
      void session.asked.client.block(session.asked.target, row.block).then((detail) => {
        if (detail && linked.cursor.peek() === row.event) session.select(detail);
      });
    }
  };
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
            onClick={() => workspace.goTo((linked.cursor.peek() ?? 0) - 1)}
          >
            ‹
          </button>
          <button
            type="button"
            aria-label="Next event"
            title="Next event (.)"
            onClick={() => workspace.goTo((linked.cursor.peek() ?? -1) + 1)}
          >
            ›
          </button>
        </span>
        <span class="toolbar-end">
          <button
            type="button"
            class="button plain"
            onClick={() =>
              void saveTable(session, { events: { filter: filter() } }, "csv", "events")
            }
          >
            CSV
          </button>
          <button
            type="button"
            class="button plain"
            onClick={() =>
              void saveTable(session, { events: { filter: filter() } }, "json", "events")
            }
          >
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
        rowKey={(row) => row.event}
        current={linked.cursor.value}
        reveal={shown?.at ?? null}
        ask={ask}
        open={openRow}
      />
    </div>
  );
}
