// The state at the time cursor: what is held, by whom.

import type { Session } from "../session.js";
import { Rows } from "./settings.js";
import { StackShares } from "./subject.js";
import type { Workspace } from "./workspace.js";

export function Moment({ session, workspace }: { session: Session; workspace: Workspace }) {
  const moment = workspace.moment.value.value;
  if (session.linked.cursor.value === null || !moment) return null;
  const { event, label, action, bands, blocks, categories, stacks } = moment;
  return (
    <section class="moment" aria-labelledby="moment-title" data-testid="moment" data-event={event}>
      <h3 id="moment-title">
        At the cursor{" "}
        <button
          type="button"
          class="link"
          onClick={() => {
            session.linked.cursor.value = null;
          }}
        >
          clear
        </button>
      </h3>
      <p class="mono">{label}</p>
      <p class="dim mono">{action}</p>
      <Rows rows={bands} />
      <p class="dim" data-value={blocks.raw}>
        {blocks.exact} live
      </p>
      <ul class="shares">
        {categories.map(({ name, label: text, bytes, share, colour }) => (
          <li key={name} class="share" data-category={name}>
            <span class="share-bar" style={{ width: `${share * 100}%`, background: session.swatch(colour) }} />
            <span class="share-text">{text}</span>
            <span class="num" data-value={bytes.raw} title={bytes.exact}>
              {bytes.text}
            </span>
          </li>
        ))}
      </ul>
      {stacks.length > 0 && <h4>By call stack</h4>}
      <StackShares session={session} workspace={workspace} stacks={stacks} />
    </section>
  );
}
