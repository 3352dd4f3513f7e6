// Why reserved memory exceeds what is in use: its parts at the reserved peak, to scale, and the
// setting that helps most.

import { useEffect, useMemo } from "preact/hooks";
import { resource } from "../../client/resource.js";
import type { ViewUses } from "../../views/workspace.js";
import { Graphs } from "./graphs.js";

type ReservedProperties = ViewUses<"selection" | "viewSelection" | "navigation" | "steps">;

export function Reserved({ selection, viewSelection, navigation, steps }: ReservedProperties) {
  const use = useMemo(() => resource(selection, "reserved", () => ({ reserved: {} })), [selection]);
  useEffect(() => () => use.stop(), [use]);
  const card = use.value.value;
  if (card === null) return null;
  const unfold = () => {
    viewSelection.leversUnfolded.value = true;
    navigation.open("summary");
  };
  return (
    <section class="reserved" aria-label="Reserved memory" data-testid="reserved">
      <p class="reserved-text">
        {card.text}{" "}
        <button type="button" class="link" onClick={unfold}>
          Which setting helps
        </button>
      </p>
      <div class="reserved-bar" aria-hidden="true">
        {card.parts.map(({ name, share }) => (
          <span key={name} data-part={name} style={{ flexGrow: share }} />
        ))}
      </div>
      <ul class="reserved-parts">
        {card.parts.map(({ name, bytes, text }) => (
          <li key={name} data-value={bytes.raw} title={`${text}, ${bytes.exact}`}>
            <span class="reserved-key" data-part={name} /> {name} <b>{bytes.text}</b>
          </li>
        ))}
      </ul>
      {card.graphs !== null && (
        <Graphs graphs={card.graphs} steps={steps} navigation={navigation} />
      )}
    </section>
  );
}
