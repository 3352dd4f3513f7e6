// The bar above the timeline: what colours say, lines of the bands, the device's memory, and how the hand is read.

import type { ColourBy } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Choice, Toggle } from "./controls.js";
import { PictureButtons } from "./picture-buttons.js";
import type { Workspace } from "./workspace.js";

export const COLOURS: readonly [ColourBy, string][] = [
  ["stack", "call stack"],
  ["category", "category"],
  ["size", "size"],
  ["age", "age"],
  ["stream", "stream"],
  ["segment", "segment"],
];

const GIB = 1024 ** 3;
/** Memory of devices as their makers name it, in GiB. */
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

const BANDS = "Lines of reserved, active and allocated bytes";
const BANDS_AND_POOLS = `${BANDS}, and of requested bytes with private pools as a whole: nothing else can use their memory`;

export function TimelineTools({ session, workspace }: { session: Session; workspace: Workspace }) {
  const { linked } = session;
  const hasPools = (workspace.course.value.value?.pools ?? 0) > 0;
  return (
    <>
      <Choice label="Colour" value={linked.colour} options={COLOURS} testid="colour-by" />
      <Legend session={session} workspace={workspace} />
      <Toggle label="Bands" title={hasPools ? BANDS_AND_POOLS : BANDS} value={linked.bands} />
      {linked.bands.value && (
        <span class="legend" aria-hidden="true">
          <span class="line" data-band="reserved" /> reserved
          <span class="line" data-band="active" /> active
          <span class="line" data-band="allocated" /> allocated
          {hasPools && (
            <>
              <span class="line" data-band="pools" /> private pools
            </>
          )}
        </span>
      )}
      <Capacity session={session} />
      <span class="toolbar-end">
        <PictureButtons session={session} plot={session.plot.value} name="timeline" />
      </span>
    </>
  );
}

/** The categories that there are at the peak, with their colours. */
function Legend({ session, workspace }: { session: Session; workspace: Workspace }) {
  if (session.linked.colour.value !== "category") return null;
  const focus = session.focus.value;
  const card = focus?.file.cards.value?.[focus.part];
  const categories = card?.categories ?? workspace.moment.value.value?.categories ?? [];
  return (
    <ul class="legend" aria-label="Categories">
      {categories.map(({ name, label, colour, bytes }) => (
        <li key={name} title={`${bytes.exact} at the peak`}>
          <span class="swatch" style={{ background: session.swatch(colour) }} /> {label}
        </li>
      ))}
    </ul>
  );
}

function Capacity({ session }: { session: Session }) {
  const { capacity } = session.linked;
  const typed = (text: string) => {
    const known = DEVICES.find(([name]) => name === text);
    const amount = known ? known[1] : Number.parseFloat(text);
    capacity.value = Number.isFinite(amount) && amount > 0 ? amount * GIB : null;
  };
  return (
    <label class="field" title="A line at the memory of the device: an amount in GiB, or a name from the list">
      <span>Capacity</span>
      <input
        list="memstrata-devices"
        size={9}
        placeholder="GiB or GPU"
        data-testid="capacity"
        onChange={(event) => typed(event.currentTarget.value)}
      />
      <datalist id="memstrata-devices">
        {DEVICES.map(([name]) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}
