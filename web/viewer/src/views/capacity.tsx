// The device's memory, as somebody types it: a line over the timeline.

import { useId, useState } from "preact/hooks";
import { GIB, TOO_LARGE } from "../linked.js";
import type { Session } from "../session.js";

/** Of what PyTorch can have of a device's memory, by the device's name, in GiB. */
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
 * Units in GiB, also as `nvidia-smi` writes them: `81559MiB`. Nobody means powers of ten with the
 * memory of a device.
 */
const UNITS: Readonly<Record<string, number>> = { m: 2 ** -10, g: 1, t: 2 ** 10 };
const AMOUNT = /^(\d+\.?\d*|\.\d+)\s*(?:([mgt])i?b?)?$/i;

/** Bytes; null for no text, undefined for one that says nothing. */
function bytesOf(text: string): number | null | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const [, known] = DEVICES.find(([name]) => name.toLowerCase() === trimmed.toLowerCase()) ?? [];
  if (known !== undefined) return known * GIB;
  const [, amount, unit = "g"] = AMOUNT.exec(trimmed) ?? [];
  const gib = Number(amount) * (UNITS[unit.toLowerCase()] ?? Number.NaN);
  return gib > 0 && gib < TOO_LARGE ? gib * GIB : undefined;
}

export function Capacity({ session }: { session: Session }) {
  const { capacity } = session.linked;
  // What was typed stands as long as the capacity is what it was then.
  const [typed, setTyped] = useState({ text: "", bytes: capacity.peek() });
  const list = useId();
  const bytes = capacity.value;
  const given = bytes === null ? "" : `${Math.round((bytes / GIB) * 1000) / 1000} GiB`;
  const shown = typed.text !== "" && typed.bytes === bytes ? typed.text : given;
  const bad = bytesOf(shown) === undefined;
  const change = (text: string) => {
    const next = bytesOf(text);
    if (next !== undefined) capacity.value = next;
    setTyped({ text, bytes: capacity.peek() });
  };
  return (
    <label
      class="field capacity"
      title={
        bad
          ? "Not an amount: 80, 79.1 GiB and 81559 MiB are, and so are the devices of the list"
          : "A line at the memory of the device: an amount in GiB, or a name from the list"
      }
    >
      <span>Capacity</span>
      <input
        list={list}
        placeholder="GiB or GPU"
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
