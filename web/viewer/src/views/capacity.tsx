// The field for the GPU's memory, which is drawn as a line over the timeline.

import { useId, useState } from "preact/hooks";
import type { Uses } from "../stores.js";
import { GIB, MAX_CAPACITY_GIB } from "../view-selection.js";

/** The memory in GiB that PyTorch can use, by GPU. */
const DEVICES: readonly [string, number][] = [
  ["B200 180 GiB", 180],
  ["H200 141 GB", 131.3],
  ["H100 80 GB", 79.1],
  ["A100 80 GB", 79.1],
  ["A100 40 GB", 39.4],
  ["L40S 48 GB", 44.5],
  ["A10G 24 GB", 22.1],
  ["V100 32 GB", 31.7],
  ["RTX 4090 24 GB", 23.6],
];

/**
 * Units in GiB, also as `nvidia-smi` writes them: `81559MiB`. GB means GiB, as is usual for GPU
 * memory.
 */
const UNITS: Readonly<Record<string, number>> = { m: 2 ** -10, g: 1, t: 2 ** 10 };
const AMOUNT = /^(\d+\.?\d*|\.\d+)\s*(?:([mgt])i?b?)?$/i;

/** The GPU that a text names, whole or by its first words: `h100`, `RTX 4090`. */
export function deviceOf(text: string): readonly [string, number] | undefined {
  const words = `${text.trim().toLowerCase()} `;
  return words === " "
    ? undefined
    : DEVICES.find(([name]) => `${name.toLowerCase()} `.startsWith(words));
}

/** Bytes of a text; null for an empty text, undefined for a text that is no amount. */
export function bytesOf(text: string): number | null | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const [, known] = deviceOf(trimmed) ?? [];
  if (known !== undefined) return known * GIB;
  const [, amount, unit = "g"] = AMOUNT.exec(trimmed) ?? [];
  const gib = Number(amount) * (UNITS[unit.toLowerCase()] ?? Number.NaN);
  return gib > 0 && gib < MAX_CAPACITY_GIB ? gib * GIB : undefined;
}

export function Capacity({ viewSelection }: Uses<"viewSelection">) {
  const { capacity } = viewSelection;
  // The typed text stays until the capacity changes elsewhere.
  const [typed, setTyped] = useState({ text: "", bytes: capacity.peek() });
  const list = useId();
  const bytes = capacity.value;
  const given = bytes === null ? "" : `${Math.round((bytes / GIB) * 1000) / 1000} GiB`;
  const shown = typed.text !== "" && typed.bytes === bytes ? typed.text : given;
  const bad = bytesOf(shown) === undefined;
  const change = (text: string) => {
    const next = bytesOf(text);
    if (next !== undefined) capacity.value = next;
    // The whole name says which of several cards is meant.
    setTyped({ text: deviceOf(text)?.[0] ?? text, bytes: capacity.peek() });
  };
  return (
    <label
      class="field capacity"
      title={
        bad
          ? "Not an amount. Type 80, 79.1 GiB or 81559 MiB, or pick a GPU from the list"
          : "Draws a line at the GPU's memory: an amount in GiB, or a GPU from the list"
      }
    >
      <span>GPU memory</span>
      <input
        list={list}
        placeholder="80 or H100"
        data-testid="capacity"
        aria-invalid={bad}
        value={shown}
        onChange={(event) => change(event.currentTarget.value)}
      />
      <datalist id={list}>
        {DEVICES.map(([name]) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}
