// The captures of CUDA graphs, and what an inference engine holds at the reserved peak.

import type { GraphsCard } from "../../generated/protocol.js";
import type { ViewUses } from "../../views/workspace.js";

interface GraphsProperties extends ViewUses<"steps" | "navigation"> {
  graphs: GraphsCard;
}

export function Graphs({ graphs, steps, navigation }: GraphsProperties) {
  // The sentences that follow, and the captures, take the room of the map.
  const [first, ...others] = graphs.text;
  const show = (event: string) => {
    navigation.open("timeline");
    steps.goTo(Number(event));
  };
  return (
    <div class="graphs" data-testid="graphs">
      <ul class="reserved-parts" aria-label="Reserved at the peak, by use">
        {graphs.uses.map(({ name, bytes }) => (
          <li key={name} data-value={bytes.raw} title={bytes.exact}>
            {name} <b>{bytes.text}</b>
          </li>
        ))}
      </ul>
      <details>
        <summary>{first}</summary>
        {others.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
        {graphs.captures.length > 0 && (
          <table class="captures" aria-label="Captures of CUDA graphs">
            <thead>
              <tr>
                <th>Capture</th>
                <th>Pool</th>
                <th class="number">Added</th>
                <th class="number">Reused</th>
                <th class="number">Kept</th>
                <th>Call site</th>
              </tr>
            </thead>
            <tbody>
              {graphs.captures.map((one) => (
                <tr key={one.event.raw}>
                  <td>
                    <button type="button" class="link" onClick={() => show(one.event.raw)}>
                      {one.event.text}
                    </button>
                  </td>
                  <td>{one.pool}</td>
                  {[one.added, one.reused, one.kept].map((bytes, column) => (
                    <td key={column} class="number" data-value={bytes.raw} title={bytes.exact}>
                      {bytes.text}
                    </td>
                  ))}
                  <td class="site">{one.site}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {graphs.more !== "" && <p class="quiet">{graphs.more}</p>}
      </details>
    </div>
  );
}
