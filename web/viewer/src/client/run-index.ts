// A run that lies beside the page: an index that names its files. Where the index says so, it is
// asked for again while somebody looks at the page, since a folder may get more snapshots.

import { type Signal, signal } from "@preact/signals";
import type { Source } from "./rank-file.js";

interface RunIndex {
  title: string;
  files: { path: string; url: string; bytes: number }[];
  /** It may become more. */
  watch?: boolean;
}

/** What an index names. */
export interface IndexedRun {
  title: string;
  sources: Source[];
  watch: boolean;
}

/** The run of an index; addresses in it are relative to it. */
export async function fromIndex(address: string): Promise<IndexedRun> {
  const base = new URL(address, document.baseURI);
  const response = await fetch(base);
  if (!response.ok)
    throw new Error(`The run is not here: ${base.pathname} answered ${response.status}.`);
  const index = (await response.json()) as RunIndex;
  const sources = index.files.map(({ path, url, bytes }) => ({
    path,
    bytes,
    from: new URL(url, base).href,
  }));
  return { title: index.title, sources, watch: index.watch === true };
}

/** Snapshots that were written since the run was opened. */
export interface Offer {
  /** Their names, the first few. */
  text: string;
  run: IndexedRun;
}

const EVERY_MS = 2000;
const NAMED = 3;

/** Looks at an index again and again, and offers what is new in it. */
export class RunWatch {
  readonly offer: Signal<Offer | null> = signal(null);
  readonly #address: string;
  readonly #lost: () => void;
  /** Addresses that are open, or whose offer was put away. */
  #known = new Set<string>();
  #timer: ReturnType<typeof setInterval> | null = null;

  constructor(address: string, lost: () => void) {
    this.#address = address;
    this.#lost = lost;
  }

  /** From now on this is what is open. */
  opened({ sources, watch }: IndexedRun): void {
    this.#know(sources);
    this.offer.value = null;
    if (watch) this.#timer ??= setInterval(() => void this.#look(), EVERY_MS);
  }

  /** Nobody wants it. */
  putAway(): void {
    this.#know(this.offer.peek()?.run.sources ?? []);
    this.offer.value = null;
  }

  destroy(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #know(sources: Source[]): void {
    for (const { from } of sources) if (typeof from === "string") this.#known.add(from);
  }

  async #look(): Promise<void> {
    if (document.hidden) return;
    const run = await fromIndex(this.#address).catch(() => null);
    if (this.#timer === null) return;
    if (run === null) {
      this.destroy();
      this.#lost();
      return;
    }
    const fresh = run.sources.filter(
      ({ from }) => typeof from === "string" && !this.#known.has(from),
    );
    if (fresh.length === 0) return;
    const names = fresh.slice(0, NAMED).map(({ path }) => path.split(/[/\\]/).at(-1));
    const text = [...names, ...(fresh.length > NAMED ? ["others"] : [])].join(", ");
    if (this.offer.peek()?.text !== text) this.offer.value = { text, run };
  }
}
