// A run that the page's server lists in an index file. An index with `watch` is polled while the
// page is visible, because new snapshots may be written to its folder.

import { type Signal, signal } from "@preact/signals";
import type { Source } from "./rank-file.js";

interface RunIndex {
  title: string;
  /**
   * `beside` is the address of the file beside the snapshot, `source` the start of the addresses of
   * source files.
   */
  files: {
    path: string;
    url: string;
    bytes: number;
    searched?: boolean;
    beside?: string | null;
    source?: string | null;
  }[];
  /** More files may come. */
  watch?: boolean;
  /** Where the server's index of the files grows while it reads them. */
  cards?: { url: string; total: number } | null;
}

/** The files of an index. */
export interface IndexedRun {
  title: string;
  sources: Source[];
  watch: boolean;
  /** The address of the lines of the server's index; null if it has none. */
  cards: string | null;
}

/** Fetches an index. Its addresses are relative to it. */
export async function fromIndex(address: string): Promise<IndexedRun> {
  const base = new URL(address, document.baseURI);
  const response = await fetch(base);
  if (!response.ok)
    throw new Error(`The run cannot be read: ${base.pathname} answered ${response.status}.`);
  const index = (await response.json()) as RunIndex;
  const sources = index.files.map(({ path, url, bytes, searched = false, beside, source }) => ({
    path,
    bytes,
    from: new URL(url, base).href,
    searched,
    ...(beside ? { beside: new URL(beside, base).href } : {}),
    ...(source ? { code: new URL(source, base).href } : {}),
  }));
  const cards = index.cards ? new URL(index.cards.url, base).href : null;
  return { title: index.title, sources, watch: index.watch === true, cards };
}

/** Snapshots written since the run was opened. */
export interface Offer {
  /** The first few file names. */
  text: string;
  run: IndexedRun;
}

const POLL_MS = 2000;
const MAX_NAMES = 3;

/** Polls an index and offers new snapshots. */
export class RunWatch {
  readonly offer: Signal<Offer | null> = signal(null);
  readonly #address: string;
  readonly #lost: () => void;
  /** Addresses that are open, or whose offer was dismissed. */
  #known = new Set<string>();
  #timer: ReturnType<typeof setInterval> | null = null;

  constructor(address: string, lost: () => void) {
    this.#address = address;
    this.#lost = lost;
  }

  /** Starts watching: these files are open. */
  opened({ sources, watch }: IndexedRun): void {
    this.#know(sources);
    this.offer.value = null;
    if (watch) this.#timer ??= setInterval(() => void this.#poll(), POLL_MS);
  }

  /** Dismisses the offer. */
  dismiss(): void {
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

  async #poll(): Promise<void> {
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
    const names = fresh.slice(0, MAX_NAMES).map(({ path }) => path.split(/[/\\]/).at(-1));
    const text = [...names, ...(fresh.length > MAX_NAMES ? ["others"] : [])].join(", ");
    if (this.offer.peek()?.text !== text) this.offer.value = { text, run };
  }
}
