// The landing page: what the viewer does, and the ways to open files.

import type { View } from "../places/index.js";
import type { Uses } from "../stores.js";
import { VERSION } from "../version.js";
import type { Opening } from "./app.js";
import { CopyButton } from "./copy-button.js";
import { Explain } from "./explain.js";
import { Icon } from "./icons.js";
import { LandingPicture } from "./landing-picture.js";
import { OpenButton } from "./open-button.js";

const RECORD = `torch.cuda.memory._record_memory_history()
...
torch.cuda.memory._dump_snapshot(f"rank{rank}_memory_snapshot.pickle")`;

/** An example to start from: the index in the folder of examples, and the view that answers. */
export interface Start {
  name: "oom" | "growth" | "compare";
  title: string;
  text: string;
  view: View;
}

const STARTS: readonly Start[] = [
  {
    name: "oom",
    title: "Out of memory",
    text: "What was allocated when an allocation failed, and what would have fit",
    view: "summary",
  },
  {
    name: "growth",
    title: "Growing memory",
    text: "Which lines keep more memory with every step",
    view: "summary",
  },
  {
    name: "compare",
    title: "Before and after",
    text: "What a change added and removed, line by line",
    view: "compare",
  },
];

type LandingProperties = Uses<"runs" | "address"> & { opening: Opening };

export function Landing({ runs, address, opening }: LandingProperties) {
  const wanted = address.wanted.value;
  // The embedding page opens files.
  if (opening.embedded.value || opening.readonly.value) {
    return (
      <section class="landing">
        <p class="lead">No snapshot is open.</p>
      </section>
    );
  }
  return (
    <section class="landing" aria-labelledby="landing-title">
      <h1 id="landing-title">See what holds GPU memory</h1>
      <p class="lead">
        Every allocation in a PyTorch memory snapshot, rank by rank, with its call stack. Files
        never leave your machine.
      </p>
      <div class="drop-zone" data-testid="drop-zone" data-over={runs.dropping.value !== null}>
        <LandingPicture />
        <Icon name="drop" />
        {wanted !== null && (
          <p class="drop-wanted" role="status" data-testid="wanted-file">
            The link is about <b>{wanted}</b>. Drop this file, or its folder.
          </p>
        )}
        <p class="drop-title">Drop snapshots or a folder anywhere</p>
        <p class="dim">pickle, gzip, trace_plot HTML or JSON; one file per rank</p>
        <div class="drop-buttons">
          <OpenButton name="Open files" class="primary" open={opening.files} testid="open-files">
            Open files
          </OpenButton>
          <OpenButton name="Open folder" class="" folder open={opening.files}>
            Open folder
          </OpenButton>
          {opening.sample !== null && (
            <button
              type="button"
              class="button"
              data-testid="open-sample"
              onClick={opening.openSample}
            >
              Try the sample run
            </button>
          )}
        </div>
      </div>
      <Explain runs={runs} />
      {opening.examples !== null && (
        <ul class="starts" aria-label="Examples">
          {STARTS.map((start) => (
            <li key={start.name}>
              <button
                type="button"
                class="start"
                data-testid={`start-${start.name}`}
                onClick={() => opening.openExample(start)}
              >
                <span class="start-title">
                  {start.title} <Icon name="go" />
                </span>
                <span class="dim">{start.text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {opening.gallery !== null && (
        <p class="gallery-link">
          <a href={opening.gallery}>Gallery: ten recorded cases, and what helped</a>
        </p>
      )}
      <div class="record">
        <div class="record-head">
          <h2>No snapshot yet? Record one</h2>
          {opening.guide !== null && (
            <a href={opening.guide}>What is recorded and how to record it</a>
          )}
        </div>
        <div class="record-code">
          <pre>
            <code>{RECORD}</code>
          </pre>
          <CopyButton text={RECORD} name="Copy" label="Copy the code" testid="copy-code" />
        </div>
      </div>
      <p class="landing-version dim" data-testid="version">
        vramscope {VERSION}
      </p>
    </section>
  );
}
