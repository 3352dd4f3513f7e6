// The landing page: what the viewer does, and the ways to open files.

import type { Uses } from "../stores.js";
import type { Opening } from "./app.js";
import { Icon } from "./icons.js";
import { OpenButton } from "./open-button.js";

const RECORD = `torch.cuda.memory._record_memory_history()
...
torch.cuda.memory._dump_snapshot(f"rank{rank}_memory_snapshot.pickle")`;

export function Landing({ runs, opening }: Uses<"runs"> & { opening: Opening }) {
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
        <Icon name="drop" />
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
      <div class="record">
        <div class="record-head">
          <h2>No snapshot yet? Record one</h2>
          {opening.guide !== null && (
            <a href={opening.guide}>What is recorded and how to record it</a>
          )}
        </div>
        <pre>
          <code>{RECORD}</code>
        </pre>
      </div>
    </section>
  );
}
