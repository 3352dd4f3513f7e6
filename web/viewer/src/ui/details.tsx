// The pane on the right: the selected block or card; without a selection, the numbers of the trace.

import type { ComponentChildren } from "preact";
import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RankFile } from "../client/rank-file.js";
import type { BlockDetail, DeviceSummary, Quantity } from "../generated/protocol.js";
import { copyText } from "../host/clipboard.js";
import type { Trace } from "../run.js";
import { CLIPBOARD_DENIED } from "../selection.js";
import type { Uses } from "../stores.js";
import { CallStack } from "./call-stack.js";
import { Icon } from "./icons.js";

type BlockOwners = Uses<"selection" | "viewSelection" | "filters" | "appearance" | "workspace">;

export function Details({
  runs,
  navigation,
  ...owners
}: BlockOwners & Uses<"runs" | "navigation">) {
  const { selection, filters, workspace } = owners;
  const detail = selection.block.value;
  const trace = selection.trace.value;
  const file = selection.focus.value?.file;
  const views = workspace.value;
  const card = selection.card.value;
  if (!navigation.detailsOpen.value) return null;
  const first = () => {
    if (card && views) return <views.ui.Card card={card} />;
    if (detail) return <Block {...owners} detail={detail} />;
    if (views && filters.terms.value.length > 0) return <views.ui.Group />;
    if (!file && runs.run.value?.isIndexed)
      return <p class="dim">Choose a rank to read its file.</p>;
    return file && <FileFacts file={file} trace={trace} />;
  };
  return (
    <aside class="details" part="details" aria-label="Details" data-testid="details">
      {first()}
      {views && <views.ui.State />}
      {!card && !detail && trace?.device?.note === null && (
        <p class="hint">Click a block to see where it was allocated and when it was freed.</p>
      )}
    </aside>
  );
}

function Block({ detail, ...owners }: BlockOwners & { detail: BlockDetail }) {
  const { selection, appearance } = owners;
  const { bytes, rows, terms, stack, color, reference } = detail;
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

/** The numbers of a trace with their labels. */
const FACTS: [label: string, of: (device: DeviceSummary) => Quantity][] = [
  ["peak", (device) => device.peak],
  ["peak event", (device) => device.peakEvent],
  ["reserved peak", (device) => device.reservedPeak],
  ["initial", (device) => device.start],
  ["final", (device) => device.end],
  ["events", (device) => device.events],
  ["blocks", (device) => device.blocks],
];

/** A file's name. It breaks after signs rather than within words. */
function Name({ text }: { text: string }) {
  const words = text.split(/(?<=[_./-])/);
  return (
    <>
      {words.map((word, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {word}
        </Fragment>
      ))}
    </>
  );
}

function FileFacts({ file, trace }: { file: RankFile; trace: Trace | null }) {
  const device = trace?.device;
  return (
    <article aria-labelledby="details-title">
      <div class="details-kind">{device ? `Trace, ${device.label}` : "File"}</div>
      <h2 class="details-file" id="details-title" title={file.path}>
        <Name text={trace?.part.name || file.path} />
      </h2>
      <dl class="rows">
        <Fact label="file size">{file.planned.size}</Fact>
        {device &&
          FACTS.map(([label, of]) => (
            <Fact key={label} label={label} raw={of(device).raw} title={of(device).exact}>
              {of(device).text}
            </Fact>
          ))}
      </dl>
    </article>
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
