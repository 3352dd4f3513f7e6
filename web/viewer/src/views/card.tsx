// The card of a range, a segment, a frame or a call stack, in the details.

import type { DetailCard, StackShareRow } from "../generated/protocol.js";
import { CallStack } from "../ui/call-stack.js";
import { CopyButton } from "../ui/details.js";
import { Icon } from "../ui/icons.js";
import { Rows } from "./detail-rows.js";
import type { ViewUses } from "./workspace.js";

type CardProperties = ViewUses<
  "selection" | "viewSelection" | "appearance" | "workspace" | "groups"
> & { card: DetailCard };

export function Card(properties: CardProperties) {
  const { selection, viewSelection, appearance, workspace, groups, card } = properties;
  const { kind, title, rows, heading, stacks, stack } = card;
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
            selection.closeCard();
            if (kind === "Range") viewSelection.range.value = null;
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
      <StackShares appearance={appearance} groups={groups} stacks={stacks} />
      {stack ? (
        <CallStack
          viewSelection={viewSelection}
          workspace={workspace}
          stack={stack}
          tool={<CopyButton selection={selection} />}
        />
      ) : (
        <p class="copy-line">
          <CopyButton selection={selection} />
        </p>
      )}
    </article>
  );
}

type StackSharesProperties = ViewUses<"appearance" | "groups"> & { stacks: StackShareRow[] };

/** Call stacks with a bar each. A click chooses all blocks of the stack. */
export function StackShares({ appearance, groups, stacks }: StackSharesProperties) {
  return (
    <ul class="shares">
      {stacks.map(({ site, via, bytes, blocks, shape, share, color, block, note, terms }) => (
        <li key={block}>
          <button
            type="button"
            class="share"
            title={[site, via, shape, bytes.exact, blocks.exact, note]
              .filter((text) => text !== "")
              .join(", ")}
            aria-pressed={groups.isChosen(terms)}
            onClick={(event) => groups.choose(terms, event)}
          >
            <span
              class="share-bar"
              style={{ width: `${share * 100}%`, background: appearance.swatch(color) }}
            />
            <span class="share-text">
              <span class="share-site">{site}</span>
              {via !== "" && <span class="share-via">{via}</span>}
              {shape !== "" && <span class="share-via share-shape">{shape}</span>}
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
