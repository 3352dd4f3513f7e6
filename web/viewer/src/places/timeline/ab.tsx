// A to B: what came, went and stayed between two moments, by category and by call site.

import type { ChangeRow, Quantity, StateChanges } from "../../generated/protocol.js";
import { NameButton } from "../../views/name-button.js";
import type { ViewUses } from "../../views/workspace.js";

type AbOwners = ViewUses<
  "selection" | "viewSelection" | "filters" | "appearance" | "queries" | "steps" | "groups"
>;

/** What can happen to a block, in the order of the totals and of the colors. */
export const CHANGES = ["came", "went", "stayed"] as const;

const HOW_TO =
  "Mark a range on the timeline (Alt+drag), or put the time cursor on a moment and press ( for A " +
  "and ) for B. Then this shows what came, went and stayed.";

export function Ab(owners: AbOwners) {
  const { viewSelection, queries } = owners;
  const { a, b } = viewSelection.ends.value;
  const changes = a === null || b === null ? null : queries.changes.value.value;
  return (
    <div class="ab">
      <div class="toolbar ab-ends">
        <End {...owners} end="a" event={a} label={changes?.moments[0]} />
        <End {...owners} end="b" event={b} label={changes?.moments[1]} />
        <button
          type="button"
          class="button plain"
          disabled={a === null && b === null}
          onClick={() => viewSelection.swapEnds()}
        >
          Swap
        </button>
        <button
          type="button"
          class="button plain"
          disabled={a === null && b === null}
          onClick={() => viewSelection.clearEnds()}
        >
          Clear
        </button>
        {a !== null && b !== null && a > b && (
          <span class="dim">A is after B: what came is live at B and not at A.</span>
        )}
      </div>
      {changes ? (
        <Tables {...owners} changes={changes} />
      ) : (
        <p class="quiet" data-testid="ab-empty">
          {a !== null && b !== null
            ? queries.changes.waiting.value && "Adding up what changed"
            : HOW_TO}
        </p>
      )}
    </div>
  );
}

type EndProperties = AbOwners & {
  end: "a" | "b";
  event: number | null;
  label: string | undefined;
};

/** One of the two moments: a click goes there. */
function End({ viewSelection, steps, end, event, label }: EndProperties) {
  const name = end.toUpperCase();
  return (
    <span class="ab-end" data-testid={`ab-${end}`} data-event={event ?? undefined}>
      <b class="ab-flag">{name}</b>
      {event === null ? (
        <span class="dim">not set</span>
      ) : (
        <button
          type="button"
          class="link"
          title={`Move the time cursor to ${name}`}
          onClick={() => steps.goTo(event)}
        >
          {label ?? ""}
        </button>
      )}
      <button
        type="button"
        class="button plain"
        disabled={viewSelection.cursor.value === null}
        title={`Set ${name} at the time cursor (${end === "a" ? "(" : ")"})`}
        onClick={() => viewSelection.setEnd(end)}
      >
        Set at cursor
      </button>
    </span>
  );
}

type TablesProperties = AbOwners & { changes: StateChanges };

function Tables({ changes, ...owners }: TablesProperties) {
  const { all, blocks, reserved, colors, categories, sites, more } = changes;
  return (
    <div class="ab-body">
      <ul class="ab-totals" aria-label="Totals">
        {CHANGES.map((name, index) => (
          <li key={name} data-change={name}>
            <span class="dim">
              <Key {...owners} color={colors[index]} /> {name}
            </span>
            <b data-value={all[name].raw} title={all[name].exact}>
              {all[name].text}
            </b>
            <span class="dim" data-blocks={blocks[index]?.raw}>
              {blocks[index]?.exact}
            </span>
          </li>
        ))}
        <li data-change="net">
          <span class="dim">net</span>
          <b data-value={all.net.raw} title={all.net.exact}>
            {all.net.text}
          </b>
          <span class="dim">
            {reserved.map(({ key, label, text, raw }, index) => (
              <span key={key} data-key={key} data-value={raw}>
                {index > 0 && ", "}
                {text} {label}
              </span>
            ))}
          </span>
        </li>
      </ul>
      <ChangeTable {...owners} title="category" rows={categories} />
      <ChangeTable {...owners} title="call site" rows={sites} more={more} />
    </div>
  );
}

/** A key of the legend; hatched as on the map. */
export function Key({ appearance, color }: ViewUses<"appearance"> & { color: number | undefined }) {
  if (color === undefined) return null;
  return (
    <span
      class="change-key"
      aria-hidden="true"
      data-hatched={(color & HATCH) !== 0}
      style={{ "--of": appearance.swatch(color) }}
    />
  );
}

/** The bit of hatched color words. */
const HATCH = 1 << 16;

type ChangeTableProperties = AbOwners & {
  title: string;
  rows: readonly ChangeRow[];
  more?: string;
};

const COLUMNS = ["came", "went", "stayed", "net"] as const;

function ChangeTable({ title, rows, more = "", ...owners }: ChangeTableProperties) {
  const { groups } = owners;
  return (
    <div class="ab-table" data-testid={`ab-by-${title.replace(" ", "-")}`}>
      <table aria-label={`Changes by ${title}`}>
        <thead>
          <tr>
            <th scope="col">{title}</th>
            {COLUMNS.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={`${row.label} ${row.note}`}
              data-row={row.label}
              aria-selected={groups.isChosen(row.terms)}
            >
              <th scope="row">
                <NameButton
                  {...owners}
                  {...row}
                  title={[row.label, row.note, row.title].filter((text) => text !== "").join("\n")}
                />
              </th>
              {COLUMNS.map((name) => (
                <Cell key={name} name={name} of={row[name]} bar={name === "net" ? row.bar : 0} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {more !== "" && <p class="dim">{more}</p>}
    </div>
  );
}

function Cell({ name, of, bar }: { name: string; of: Quantity; bar: number }) {
  const isNone = of.raw === "0";
  return (
    <td data-column={name} data-value={of.raw} title={of.exact} data-none={isNone}>
      {isNone ? "–" : of.text}
      {bar !== 0 && (
        <span
          class="ab-bar"
          data-less={bar < 0}
          style={{ width: `${Math.abs(bar) * 100}%` }}
          aria-hidden="true"
        />
      )}
    </td>
  );
}
