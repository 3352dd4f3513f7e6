// The panel on the right, while something is selected: a block, a card, a group.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { BlockDetail } from "../generated/protocol.js";
import { copyText } from "../host/clipboard.js";
import { CLIPBOARD_DENIED } from "../selection.js";
import type { Uses } from "../stores.js";
import { CallStack } from "./call-stack.js";
import { Icon } from "./icons.js";

type BlockOwners = Uses<"selection" | "viewSelection" | "filters" | "appearance" | "workspace">;

/** Whether the panel has something to show. */
export function isSelected({ selection, filters }: Uses<"selection" | "filters">): boolean {
  const { block, card } = selection;
  return block.value !== null || card.value !== null || filters.terms.value.length > 0;
}

export function Details(owners: BlockOwners) {
  const { selection, filters, workspace } = owners;
  const detail = selection.block.value;
  const views = workspace.value;
  const card = selection.card.value;
  const first = () => {
    if (card && views) return <views.ui.Card card={card} />;
    if (detail) return <Block {...owners} detail={detail} />;
    return views && filters.terms.value.length > 0 && <views.ui.Group />;
  };
  return (
    <aside class="details" part="details" aria-label="Selection" data-testid="details">
      {first()}
    </aside>
  );
}

/** The row of the forward line, at which the stack of backward begins. */
const START = "backward_of";

function Block({ detail, ...owners }: BlockOwners & { detail: BlockDetail }) {
  const { selection, appearance } = owners;
  const { bytes, terms, stack, color, reference } = detail;
  const start = detail.rows.find(({ key }) => key === START);
  const rows = detail.rows.filter((row) => row !== start);
  return (
    <article aria-labelledby="details-title" data-reference={reference}>
      <div class="details-kind">
        <span class="swatch" style={{ background: appearance.swatch(color) }} />
        <span>Block</span>
        <button
          type="button"
          class="button plain"
          title="Clear the selection (Esc)"
          aria-label="Clear the selection"
          onClick={() => selection.select(null)}
        >
          <Icon name="close" />
        </button>
      </div>
      <h2 class="details-size" id="details-title" data-value={bytes.raw}>
        {bytes.text}
      </h2>
      <dl class="rows">
        {rows.map(({ key, label, text, raw }) => (
          <Fact key={key} name={key} label={label} raw={raw}>
            {key === "site" ? (
              <button
                type="button"
                class="link fact-link"
                title="Choose all blocks of this call site"
                onClick={(event) => owners.workspace.peek()?.stores.groups.choose(terms, event)}
              >
                {text}
              </button>
            ) : (
              text
            )}
          </Fact>
        ))}
      </dl>
      <CallStack
        key={reference}
        {...owners}
        stack={stack}
        start={start && `${start.label} ${start.text}`}
        tool={<CopyButton selection={selection} key={reference} />}
      />
    </article>
  );
}

export function CopyButton({ selection }: Uses<"selection">) {
  return <Copy title="Copy the block and its stack as text" copy={() => selection.copy()} />;
}

type CopyTextProperties = Uses<"status"> & { text: string; title: string };

/** Copies a text. */
export function CopyText({ text, title, status }: CopyTextProperties) {
  const copy = async () => {
    const done = await copyText(text);
    status.announce(done ? "Copied" : CLIPBOARD_DENIED);
    return done;
  };
  return <Copy title={title} copy={copy} />;
}

function Copy({ title, copy }: { title: string; copy(): Promise<boolean> }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const waiting = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(waiting);
  }, [copied]);
  return (
    <button type="button" class="link" title={title} onClick={() => void copy().then(setCopied)}>
      {copied ? "copied" : "copy"}
    </button>
  );
}

interface FactProperties {
  label: string;
  name?: string;
  raw?: string | null;
  title?: string;
  children: ComponentChildren;
}

export function Fact({ label, name, raw, title, children }: FactProperties) {
  return (
    <div class="row" data-key={name}>
      <dt>{label}</dt>
      <dd data-value={raw} title={title}>
        {children}
      </dd>
    </div>
  );
}
