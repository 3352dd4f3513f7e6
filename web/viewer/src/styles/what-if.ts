// The "What if" view, and its line over the timeline.

export const whatIf = `
.simulated { position: absolute; overflow: hidden; pointer-events: none; }
.simulated path {
  fill: none;
  stroke: var(--band-simulated);
  stroke-width: 2;
  stroke-linejoin: round;
  vector-effect: non-scaling-stroke;
}
.what-if {
  display: flex;
  flex-direction: column;
  flex: 1;
  min-width: 0;
  min-height: 0;
  overflow: auto;
  container-type: inline-size;
}
.what-if-status {
  display: flex;
  flex: none;
  align-items: center;
  gap: 8px;
  padding: 7px 14px;
  border-bottom: 1px solid var(--line);
  color: var(--dim);
}
.what-if-status .icon { flex: none; width: 14px; height: 14px; color: var(--band-active); }
.what-if-body {
  display: grid;
  flex: 1;
  grid-template: "question verdict" auto "question answers" 1fr / 344px minmax(0, 1fr);
}
.what-if-question {
  grid-area: question;
  display: grid;
  align-content: start;
  gap: 6px 28px;
  padding: 10px 14px 14px;
  border-right: 1px solid var(--line);
  font-size: 12px;
}
.what-if-field {
  display: flex;
  align-items: center;
  justify-content: space-between;
  gap: 12px;
  min-height: 26px;
}
.what-if-field > :first-child { color: var(--dim); white-space: nowrap; }
.what-if-field .select { min-width: 0; }
.what-if-field .select select { width: 148px; }
.what-if-field.field input { width: 148px; }
.what-if-recipes { flex-wrap: wrap; gap: 2px 12px; }
.what-if-recipes.field input { flex: 1 0 100%; }
.what-if-reset { justify-self: end; margin-top: 2px; }
.what-if-reset:disabled { visibility: hidden; }
.switch {
  position: relative;
  flex: none;
  width: 30px;
  height: 18px;
  margin: 0;
  border-radius: 9px;
  background: var(--line-strong);
  appearance: none;
  cursor: pointer;
  transition: background 120ms;
}
.switch::after {
  content: "";
  position: absolute;
  top: 2px;
  left: 2px;
  width: 14px;
  height: 14px;
  border-radius: 50%;
  background: #fff;
  transition: transform 120ms;
}
.switch:checked { background: var(--accent-solid); }
.switch:checked::after { transform: translateX(12px); }
.switch:focus-visible { outline-offset: 1px; }
.what-if-answers { grid-area: answers; min-width: 0; container-type: inline-size; }
.what-if-verdict {
  grid-area: verdict;
  display: flex;
  flex-wrap: wrap;
  align-items: baseline;
  gap: 4px 16px;
  padding: 12px 14px;
}
.what-if-verdict p { font-size: 15px; font-weight: 550; text-wrap: pretty; }
.what-if-basis { font-size: 12px; }
.what-if-verdict code {
  flex-basis: 100%;
  overflow-wrap: anywhere;
  color: var(--dim);
  font: 400 12px var(--mono);
  user-select: all;
}
[aria-busy="true"].what-if-verdict > *, .what-if-table [aria-busy="true"] > * {
  opacity: 0.5;
  transition: opacity 80ms linear 120ms;
}
.what-if-table { overflow: auto hidden; border-top: 1px solid var(--line); }
.what-if-table .grid td, .what-if-table .grid thead th { white-space: nowrap; }
/* The words of all changes can be long. */
.what-if-table .grid tbody th { min-width: 180px; padding-block: 5px; white-space: normal; }
.what-if-table [data-asked="true"] { background: var(--tint); }
.what-if-table [data-asked="true"] > th { font-weight: 500; }
.what-if-table [data-column="outcome"] .link { margin-left: -2px; color: var(--error); }
.what-if-table [data-column="outcome"] .link { text-align: left; }
.what-if-sentence { max-width: 84ch; padding: 10px 14px 14px; color: var(--dim); }

@container (width < 820px) {
  .what-if-body { grid-template: "verdict" auto "question" auto "answers" 1fr / minmax(0, 1fr); }
  .what-if-question {
    grid-template-columns: repeat(auto-fill, minmax(158px, 1fr));
    gap: 6px 20px;
    padding-block: 8px;
    border-block: 1px solid var(--line);
    border-right: 0;
  }
  /* Labels are above their fields, several to a row, so that the table is not far below. */
  .what-if-field { flex-wrap: wrap; align-content: start; gap: 2px 8px; }
  .what-if-field > .select, .what-if-field.field > input { flex: 1 0 100%; }
  .what-if-field .select select { width: 100%; }
  .what-if-reset { align-self: end; justify-self: start; }
  .what-if-verdict { padding-block: 8px 10px; }
  .what-if-table { border-top: 0; }
}
/* The basis stays: no predicted number is without it. */
@container (width < 900px) {
  .what-if-table :is([data-column="active"], [data-column="flushes"]) { display: none; }
  .what-if-table .grid :is(th, td):not(:first-child) { padding-inline: 6px; }
}
@container (width < 640px) {
  .what-if-table [data-column="difference"] { display: none; }
  .what-if-table td[data-column="outcome"] { min-width: 110px; white-space: normal; }
}
/* Each scenario is a small card: its name, then its numbers with their labels. */
@container (width < 480px) {
  .what-if-table thead { display: none; }
  .what-if-table .grid, .what-if-table tbody { display: block; }
  .what-if-table tr {
    display: grid;
    grid-template-columns: repeat(2, minmax(0, 1fr));
    gap: 2px 16px;
    padding: 8px 14px;
    border-bottom: 1px solid var(--line);
  }
  .what-if-table .grid tbody tr > :is(th, td):nth-child(n) {
    display: flex;
    justify-content: space-between;
    gap: 8px;
    min-width: 0;
    height: auto;
    padding: 0;
    border: 0;
    text-align: left;
    white-space: normal;
  }
  .what-if-table .grid tbody th { grid-column: 1 / -1; }
  .what-if-table .grid tbody td::before {
    content: attr(data-label);
    flex: none;
    color: var(--dim);
    font: 400 12px var(--sans);
  }
  .what-if-table .grid tbody tr > td:is([data-column="difference"], [data-column="active"],
    [data-column="flushes"], [data-column="needs"]:empty) { display: none; }
}
`;
