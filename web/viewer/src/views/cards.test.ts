import { signal } from "@preact/signals";
import { expect, test, vi } from "vitest";
import type { DetailCard } from "../generated/protocol.js";
import { Cards } from "./cards.js";

const CARD = { kind: "Range", title: { text: "1 to 2" }, rows: [] } as unknown as DetailCard;

/** Cards of a viewer whose worker answers when `answer` is called. */
function waiting() {
  let answer = () => {};
  const promise = new Promise<DetailCard>((resolve) => {
    answer = () => resolve(CARD);
  });
  const target = { client: { view: () => promise }, target: { part: 0, device: 0 } };
  const selection = {
    target,
    trace: signal(null),
    block: signal<object | null>(null),
    card: signal<DetailCard | null>(null),
  };
  const owners = {
    selection,
    viewSelection: { cursor: signal(null), range: signal({ axis: "event", x0: 1, x1: 2 }) },
    plots: {},
    status: { announce: vi.fn() },
  };
  const cards = new Cards(owners as unknown as ConstructorParameters<typeof Cards>[0]);
  return { cards, selection, answer: () => answer() };
}

test("the card of a range does not cover a block that was selected while it came", async () => {
  const { cards, selection, answer } = waiting();
  const shown = cards.showRange();
  selection.block.value = {};
  answer();
  await shown;
  expect(selection.card.value).toBeNull();
});

test("the card of a range covers the block that was selected before", async () => {
  const { cards, selection, answer } = waiting();
  selection.block.value = {};
  const shown = cards.showRange();
  answer();
  await shown;
  expect(selection.card.value).toBe(CARD);
});
