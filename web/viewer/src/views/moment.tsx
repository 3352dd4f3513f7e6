// What is held, by whom: at the time cursor, and at the peak when nothing else was asked for.

import type { Moment as State } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { Rows } from "./settings.js";
import { StackShares } from "./subject.js";
import type { Workspace } from "./workspace.js";

/** Call stacks that hold most at the peak: what has room without scrolling. */
const FIRST = 6;
/** Findings that are shown there; all are in their view. */
const FEW = 3;

interface MomentProperties {
  session: Session;
  workspace: Workspace;
}

export function Moment({ session, workspace }: MomentProperties) {
  const { cursor } = session.linked;
  const moment = workspace.moment.value.value;
  if (cursor.value === null) return <Answers session={session} workspace={workspace} />;
  if (!moment) return null;
  const { event, label, action } = moment;
  const clear = () => {
    cursor.value = null;
  };
  return (
    <section class="moment" aria-labelledby="moment-title" data-testid="moment" data-event={event}>
      <h3 id="moment-title">
        At the cursor{" "}
        <button type="button" class="link" onClick={clear}>
          clear
        </button>
      </h3>
      <p class="mono">{label}</p>
      <p class="dim mono">{action}</p>
      <Rows rows={moment.bands} />
      <Held session={session} workspace={workspace} moment={moment} />
    </section>
  );
}

/** What somebody who has just opened a file asks. The bands' peaks are above it. */
function Answers({ session, workspace }: MomentProperties) {
  if (session.subject.value !== null || session.selected.value !== null) return null;
  return (
    <>
      <Notable session={session} workspace={workspace} />
      <AtPeak session={session} workspace={workspace} />
    </>
  );
}

/** An out-of-memory error, most of all. */
function Notable({ workspace }: MomentProperties) {
  const all = workspace.findings.value.value?.filter(({ severity }) => severity !== "low") ?? [];
  const more = all.length - FEW;
  if (all.length === 0) return null;
  return (
    <ul class="notable" aria-label="Findings">
      {all.slice(0, FEW).map((finding) => (
        <li key={finding.id}>
          <button
            type="button"
            class="finding-line"
            data-severity={finding.severity}
            title={finding.text}
            onClick={() => void workspace.openFinding(finding)}
          >
            {finding.label} <span class="num">{finding.bytes.text}</span>{" "}
            <span class="num dim">{finding.at}</span>
          </button>
        </li>
      ))}
      {more > 0 && (
        <li>
          <button type="button" class="link" onClick={() => workspace.open("anomalies")}>
            {more} more
          </button>
        </li>
      )}
    </ul>
  );
}

function AtPeak({ session, workspace }: MomentProperties) {
  const moment = workspace.peak.value.value;
  if (!moment || moment.stacks.length === 0) return null;
  const go = () => workspace.goTo(moment.event);
  return (
    <section
      class="moment"
      aria-labelledby="peak-title"
      data-testid="at-peak"
      data-event={moment.event}
    >
      <h3 id="peak-title">
        At the peak{" "}
        <button type="button" class="link" title="The cursor to the peak (P)" onClick={go}>
          go there
        </button>
      </h3>
      <Held
        session={session}
        workspace={workspace}
        moment={{ ...moment, stacks: moment.stacks.slice(0, FIRST) }}
      />
      <button type="button" class="link" onClick={() => workspace.open("flame")}>
        all as a flame graph
      </button>
    </section>
  );
}

function Held({ session, workspace, moment }: MomentProperties & { moment: State }) {
  const { blocks, categories, stacks } = moment;
  return (
    <>
      <p class="dim" data-value={blocks.raw}>
        {blocks.exact} live
      </p>
      <ul class="shares">
        {categories.map(({ name, label: text, bytes, share, color }) => (
          <li key={name} class="share" data-category={name}>
            <span
              class="share-bar"
              style={{ width: `${share * 100}%`, background: session.swatch(color) }}
            />
            <span class="share-text">{text}</span>
            <span class="num" data-value={bytes.raw} title={bytes.exact}>
              {bytes.text}
            </span>
          </li>
        ))}
      </ul>
      {stacks.length > 0 && <h4>By call stack</h4>}
      <StackShares session={session} workspace={workspace} stacks={stacks} />
    </>
  );
}
