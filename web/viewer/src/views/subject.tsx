// Details of what is no block: a range, a segment, a frame.

import type { DetailCard, StackShareRow } from "../generated/protocol.js";
import type { Session } from "../session.js";
import { CallStack } from "../ui/call-stack.js";
import { CopyButton } from "../ui/details.js";
import { Icon } from "../ui/icons.js";
import { Rows } from "./settings.js";
import type { Workspace } from "./workspace.js";

interface SubjectProperties {
  session: Session;
  workspace: Workspace;
  subject: DetailCard;
}

export function Subject({ session, workspace, subject }: SubjectProperties) {
  const { kind, title, rows, heading, stacks, stack } = subject;
  return (
    <article aria-labelledby="details-title" data-kind={kind}>
      <div class="details-kind">
        <span>{kind}</span>
        <button
          type="button"
          class="button plain"
          title="Close (Esc)"
          aria-label={`Close the ${kind.toLowerCase()}`}
          onClick={() => {
            session.subject.value = null;
            if (kind === "Range") session.linked.range.value = null;
          }}
        >
          <Icon name="close" />
        </button>
      </div>
      <h2 class="details-size" id="details-title" data-value={title.raw} title={title.exact}>
        {title.text}
      </h2>
      <Rows rows={rows} />
      {stacks.length > 0 && <h4>{heading}</h4>}
      <StackShares session={session} workspace={workspace} stacks={stacks} />
      {stack ? (
        <CallStack session={session} stack={stack} tool={<CopyButton session={session} />} />
      ) : (
        <p class="copy-line">
          <CopyButton session={session} />
        </p>
      )}
    </article>
  );
}

export function StackShares({
  session,
  workspace,
  stacks,
}: Omit<SubjectProperties, "subject"> & { stacks: StackShareRow[] }) {
  return (
    <ul class="shares">
      {stacks.map(({ site, via, bytes, blocks, share, color, block, note }) => (
        <li key={block}>
          <button
            type="button"
            class="share"
            title={[site, via, bytes.exact, blocks.exact, note]
              .filter((said) => said !== "")
              .join(", ")}
            onClick={() => void workspace.showBlock(block)}
          >
            <span
              class="share-bar"
              style={{ width: `${share * 100}%`, background: session.swatch(color) }}
            />
            <span class="share-text">
              <span class="share-site">{site}</span>
              {via !== "" && <span class="share-via">{via}</span>}
            </span>
            <span class="num" data-value={bytes.raw}>
              {bytes.text}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
