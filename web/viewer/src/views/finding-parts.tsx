// What a finding's card opens: the call sites, the call stack and the blocks behind it.

import { useEffect, useState } from "preact/hooks";
import type { BlockPage, FindingChild, FindingRow, FrameRow } from "../generated/protocol.js";
import { Frame } from "../ui/call-stack.js";
import type { ViewUses } from "./workspace.js";

/** Call sites that are listed at first. */
const FIRST_PARTS = 3;
/** The largest blocks of a finding that are listed. */
const BLOCKS = 8;

/** A handler of a control in a card, whose clicks are not clicks of the card. */
export function alone(act: () => void): (event: MouseEvent) => void {
  return (event) => {
    event.stopPropagation();
    act();
  };
}

export function Parts({ parts }: { parts: readonly FindingChild[] }) {
  const [isOpen, setOpen] = useState(false);
  const rest = parts.length - FIRST_PARTS;
  return (
    <>
      <ul class="parts" aria-label="Call sites">
        {(isOpen ? parts : parts.slice(0, FIRST_PARTS)).map(({ site, bytes, blocks }) => (
          <li key={site}>
            <span class="mono part-site" title={site}>
              {site}
            </span>
            <span class="num" data-value={bytes.raw} title={bytes.exact}>
              {bytes.text}
            </span>
            <span class="num dim">{blocks.raw !== "0" && blocks.exact}</span>
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <button
          type="button"
          class="link parts-more"
          aria-expanded={isOpen}
          onClick={alone(() => setOpen(!isOpen))}
        >
          {isOpen ? "show fewer" : `and ${rest} more`}
        </button>
      )}
    </>
  );
}

type FramesProperties = ViewUses<"workspace"> & { frames: readonly FrameRow[] };

/** The program's innermost frames. */
export function Frames({ workspace, frames }: FramesProperties) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: clicks on the frames are not clicks of the card
    <ol class="frames finding-more-rows" aria-label="Call stack" onClick={alone(() => {})}>
      {frames.map((frame, index) => (
        <Frame key={index} workspace={workspace} frame={frame} />
      ))}
    </ol>
  );
}

type BlocksProperties = ViewUses<"selection" | "navigation" | "steps" | "cards" | "groups"> & {
  finding: FindingRow;
};

/** The largest blocks of a finding. A click shows a block in the details. */
export function FindingBlocks(owners: BlocksProperties) {
  const { selection, navigation, steps, cards, groups, finding } = owners;
  const [page, setPage] = useState<BlockPage | null>(null);
  const { terms } = finding.view;
  const { path } = finding.record;
  const text = terms.map((term) => (/\s/.test(term) ? `"${term}"` : term)).join(" ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the finding has what they need
  useEffect(() => {
    let isShown = true;
    const ask = async () => {
      await steps.look(finding);
      const { target } = selection;
      const table = { text, category: "", liveAt: null, sort: "size", descending: true } as const;
      const query = { blocks: { table, from: 0, count: BLOCKS, near: null } };
      const answer = await target?.client.view(target.target, "blocks", query);
      if (isShown && answer) setPage(answer);
    };
    void ask();
    return () => {
      isShown = false;
    };
  }, [text, path]);
  if (page === null) return <p class="dim finding-more-rows">Looking for its blocks</p>;
  return (
    <div class="finding-more-rows">
      <ul class="finding-blocks" aria-label="Blocks">
        {page.rows.map(({ record, view }) => (
          <li key={view.block}>
            <button
              type="button"
              class="finding-block"
              title={record.site}
              onClick={alone(() => void cards.showBlock(view.block))}
            >
              <span class="num" data-value={record.bytes.raw}>
                {record.bytes.text}
              </span>
              <span class="mono block-address">{view.place}</span>
              <span class="num dim">
                {view.allocated} · {view.freed}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <button
        type="button"
        class="link"
        onClick={alone(() => {
          if (!groups.isChosen(terms)) groups.choose(terms);
          navigation.openDrawer("blocks");
        })}
      >
        {page.text}: open as a table
      </button>
    </div>
  );
}
