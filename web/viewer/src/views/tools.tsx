// The bar above the timeline: what colors say, lines of the bands, the device's memory, and how
// the hand is read.

import type { ColorBy } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Capacity } from "./capacity.js";
import { Choice, Toggle } from "./controls.js";
import { PictureButtons } from "./picture-buttons.js";
import type { Workspace } from "./workspace.js";

export const COLORS: readonly [ColorBy, string][] = [
  ["stack", "call stack"],
  ["category", "category"],
  ["size", "size"],
  ["age", "age"],
  ["stream", "stream"],
  ["segment", "segment"],
];

const BANDS = "Lines of reserved, active and allocated bytes";
const BANDS_AND_POOLS = `${BANDS}, and of requested bytes with private pools as a whole: nothing else can use their memory`;

export function TimelineTools({ session, workspace }: { session: Session; workspace: Workspace }) {
  const { linked } = session;
  const hasPools = (workspace.course.value.value?.pools ?? 0) > 0;
  return (
    <>
      <Choice label="Color" value={linked.color} options={COLORS} testid="color-by" />
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

/** The categories that there are at the peak, with their colors. */
function Legend({ session, workspace }: { session: Session; workspace: Workspace }) {
  if (session.linked.color.value !== "category") return null;
  const focus = session.focus.value;
  const card = focus?.file.cards.value?.[focus.part];
  const categories = card?.categories ?? workspace.moment.value.value?.categories ?? [];
  return (
    <ul class="legend" aria-label="Categories">
      {categories.map(({ name, label, color, bytes }) => (
        <li key={name} title={`${bytes.exact} at the peak`}>
          <span class="swatch" style={{ background: session.swatch(color) }} /> {label}
        </li>
      ))}
    </ul>
  );
}
