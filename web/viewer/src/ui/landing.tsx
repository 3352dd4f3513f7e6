// The landing page: what the viewer does, and the ways to open files.

import type { Uses } from "../stores.js";
import { VERSION } from "../version.js";
import type { Opening } from "./app.js";
import { CopyButton } from "./copy-button.js";
import { Explain } from "./explain.js";
import { Icon } from "./icons.js";
import { LandingPicture } from "./landing-picture.js";
import { Notice } from "./notice.js";
import { OpenButton } from "./open-button.js";

/** Ways to write a snapshot: of a program as it is, and by PyTorch alone. */
const RECORD = [
  ["Copy the command", "vramscope record -o runs/42 train.py"],
  [
    "Copy the lines of Python",
    `torch.cuda.memory._record_memory_history()
...
torch.cuda.memory._dump_snapshot("rank0.pickle")`,
  ],
] as const;

type LandingProperties = Uses<"runs" | "address" | "status"> & { opening: Opening };

export function Landing({ runs, address, status, opening }: LandingProperties) {
  const { example, sample, gallery, docs, guide } = opening;
  const wanted = address.wanted.value;
  // The embedding page opens files.
  if (opening.embedded.value || opening.readonly.value) {
    return (
      <section class="landing">
        <Notice status={status} />
        <p class="dim">No snapshot is open.</p>
      </section>
    );
  }
  return (
    <section class="landing" aria-labelledby="landing-title">
      <h1 id="landing-title">What holds your GPU memory, why, and what to change</h1>
      <div class="drop-zone" data-testid="drop-zone" data-over={runs.dropping.value !== null}>
        <LandingPicture />
        <Icon name="drop" />
        {wanted !== null && (
          <p class="drop-wanted" role="status" data-testid="wanted-file">
            The link is about <b>{wanted}</b>. Drop this file, or its folder.
          </p>
        )}
        <p class="drop-title">Drop a PyTorch memory snapshot, or a folder of ranks</p>
        <p class="dim">Nothing is uploaded.</p>
        <div class="drop-buttons">
          <OpenButton name="Open files" class="primary" open={opening.files} testid="open-files">
            Open files
          </OpenButton>
          <OpenButton name="Open folder" class="" folder open={opening.files}>
            Open folder
          </OpenButton>
          {example !== null && (
            <button
              type="button"
              class="button"
              data-testid="start-oom"
              onClick={() => opening.openIndex(example)}
            >
              Try an out-of-memory example <Icon name="go" />
            </button>
          )}
        </div>
        <Notice status={status} />
      </div>
      <Explain runs={runs} links={opening.links} />
      <div class="record">
        <h2>No snapshot yet? {guide !== null && <a href={guide}>How to record one</a>}</h2>
        {RECORD.map(([label, code]) => (
          <div class="record-code" key={code}>
            <pre>
              <code>{code}</code>
            </pre>
            <CopyButton text={code} name="Copy" label={label} testid="copy-code" />
          </div>
        ))}
      </div>
      <footer class="dim">
        {sample !== null && (
          <button
            type="button"
            class="link"
            data-testid="open-sample"
            onClick={() => opening.openIndex(sample)}
          >
            Try the sample run
          </button>
        )}
        {gallery !== null && <a href={gallery}>Gallery of ten cases</a>}
        {docs !== null && <a href={docs}>Documents</a>}
        <span data-testid="version">vramscope {VERSION}</span>
      </footer>
    </section>
  );
}
