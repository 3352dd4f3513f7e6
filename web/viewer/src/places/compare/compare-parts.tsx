// Parts of the comparison: tables of what differs, and the curves with their difference.

import { useState } from "preact/hooks";
import type { ComparedCurves, DiffRow, RecordingRow } from "../../generated/protocol.js";
import { COMPARED } from "../../generated/protocol.js";
import type { Comparing, Picture } from "./comparing.js";

/** The settings that differ, then steps and inputs. */
export function Recording({ rows }: { rows: readonly RecordingRow[] }) {
  return (
    <table class="grid compare-recording" data-testid="compare-recording">
      <thead>
        <tr>
          <th scope="col">recording</th>
          <th scope="col">A</th>
          <th scope="col">B</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, a, b }) => (
          <tr key={name} data-key={name}>
            <th scope="row">{name}</th>
            <td>{a}</td>
            <td>{b}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Rows that changed; the others are folded behind their number. */
export function Group({ rows, unchanged }: { rows: readonly DiffRow[]; unchanged: string }) {
  const [open, setOpen] = useState(false);
  const isSame = ({ values }: DiffRow) => values.change.raw === "0";
  return (
    <tbody>
      {rows
        .filter((row) => !isSame(row))
        .map((row) => (
          <Total key={row.key} row={row} />
        ))}
      {unchanged !== "" && (
        <tr class="compare-fold">
          <td colSpan={5}>
            <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
              {unchanged}
            </button>
          </td>
        </tr>
      )}
      {rows.filter(isSame).map((row) => (
        <Total key={row.key} row={row} hidden={!open} />
      ))}
    </tbody>
  );
}

function Total({ row, hidden = false }: { row: DiffRow; hidden?: boolean }) {
  const { key, label, percent } = row;
  const { a, b, change } = row.values;
  const none = change.raw === "0";
  return (
    <tr data-key={key} data-strong={key.endsWith(".peak")} data-none={none} hidden={hidden}>
      <th scope="row">{label}</th>
      <td class="num" data-column="a" data-value={a.raw} title={a.exact}>
        {a.text}
      </td>
      <td class="num" data-column="b" data-value={b.raw} title={b.exact}>
        {b.text}
      </td>
      <td
        class="num"
        data-column="change"
        data-value={change.raw}
        title={`${change.exact}, ${percent}`}
      >
        {change.text}
      </td>
      <td class="num" data-column="percent">
        {percent}
      </td>
    </tr>
  );
}

const PICTURES: readonly (readonly [Picture, string, string])[] = [
  ["curves", "over time", "Both curves on one axis"],
  ["tree", "flame graph", "Call stacks of both: red grew, blue shrank"],
];

/** Chooses the picture above the tables. */
export function PictureSwitch({ comparing }: { comparing: Comparing }) {
  return (
    <fieldset class="segmented small" aria-label="Picture">
      {PICTURES.map(([picture, label, title]) => (
        <button
          key={picture}
          type="button"
          aria-pressed={comparing.picture.value === picture}
          title={title}
          onClick={() => {
            comparing.picture.value = picture;
          }}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}

export function Curves({
  comparing,
  curves,
  text,
  peaks,
}: {
  comparing: Comparing;
  curves: ComparedCurves;
  text: string;
  peaks: [string, string];
}) {
  const { difference } = curves;
  return (
    <figure class="compare-curves">
      <figcaption>
        <PictureSwitch comparing={comparing} />
        <span data-testid="compare-text">{text}</span>
        <span class="legend">
          {(["A", "B"] as const).map((side, index) => (
            <span key={side} data-side={side}>
              <span class="line" /> {side}, peak {peaks[index]}
            </span>
          ))}
        </span>
      </figcaption>
      <div class="compare-plot" data-testid="compare-curves" data-align={curves.align}>
        {curves.y.map(({ at, text: label }) => (
          <span key={label} class="compare-y" style={{ bottom: `${at * 100}%` }}>
            <span>{label}</span>
          </span>
        ))}
        <svg
          viewBox={`0 0 ${COMPARED[0]} ${COMPARED[1]}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={text}
        >
          <path data-side="A" d={curves.a} />
          <path data-side="B" d={curves.b} />
        </svg>
        {curves.x.map(({ at, text: label }) => (
          <span
            key={label}
            class="compare-x"
            data-last={at > 0.86}
            style={{ left: `${at * 100}%` }}
          >
            {label}
          </span>
        ))}
      </div>
      {(difference.most !== "" || difference.least !== "") && (
        <div class="compare-difference" data-testid="compare-difference">
          <span class="compare-difference-name">B − A</span>
          <svg
            viewBox={`0 0 ${COMPARED[0]} ${COMPARED[1]}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`B minus A: ${difference.most} ${difference.least}`}
          >
            <path data-side="B" d={difference.more} />
            <path data-side="A" d={difference.less} />
          </svg>
          <span class="compare-zero" style={{ top: `${difference.zero * 100}%` }} />
          {difference.most !== "" && <span data-at="most">{difference.most}</span>}
          {difference.least !== "" && <span data-at="least">{difference.least}</span>}
        </div>
      )}
    </figure>
  );
}
