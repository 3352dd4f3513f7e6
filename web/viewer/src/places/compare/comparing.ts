// A comparison of two rows. A is the pinned row, else the baseline of the run. B is the row in
// focus, unless that is the baseline. Each worker writes its side as text, and the coordinator
// compares both sides.

import { computed, effect, type Signal, signal, untracked } from "@preact/signals";
import { type ContentOf, contentOf, type KindOf } from "../../client/answers.js";
import type { Range } from "../../client/rank-client.js";
import type { RankFile } from "../../client/rank-file.js";
import type {
  Align,
  BandKind,
  CompareAnswer,
  ComparedFlame,
  ComparedNode,
  ComparedStack,
  ComparedStacks,
  ComparedTile,
  ComparedTree,
  CompareQuery,
  Comparison,
  FlameBox,
  TileKey,
} from "../../generated/protocol.js";
import { copyText } from "../../host/clipboard.js";
import { failureOf, type Row, rowName } from "../../run.js";
import { CLIPBOARD_DENIED } from "../../selection.js";
import type { Uses } from "../../stores.js";
import type { Pin } from "../../view-selection.js";
import { counterpart, pairOf } from "./compare-pair.js";

type ComparingOwners = Uses<"runs" | "selection" | "viewSelection" | "status">;

const isSame = (a: Row | null, b: Row | null) => a?.file === b?.file && a?.part === b?.part;
const pinOf = ({ file: { path }, part }: Row): Pin => ({ path, part });

/** Both curves over time, or the call stacks of both as a flame graph. */
export type Picture = "curves" | "tree";

export class Comparing {
  readonly band: Signal<BandKind> = signal("requested_bytes");
  /** The chosen alignment; null for the best one that both recordings have. */
  readonly align: Signal<Align | null> = signal(null);
  /** The group of the shown call stacks; empty for all that changed. */
  readonly group: Signal<string> = signal("");
  /** Filter of the call stacks. */
  readonly text: Signal<string> = signal("");
  /** The picture above the tables. */
  readonly picture: Signal<Picture> = signal("curves");
  /** Whether the flame graph's widths are the bytes of A. */
  readonly ofA: Signal<boolean> = signal(false);
  /** The root of the flame graph of an order; graphs of other orders have other paths. */
  readonly #root = signal({ order: "", path: "" });
  /** The flame graph; its root narrows the table of call stacks while the graph is shown. */
  readonly tree = computed<ComparedTree>(() => {
    const { flame, hideFramework } = this.#owners.viewSelection;
    const order = {
      ofA: this.ofA.value,
      inverted: flame.value.inverted,
      hideFramework: hideFramework.value,
    };
    const { order: of, path } = this.#root.value;
    const isShown = this.picture.value === "tree" && of === JSON.stringify(order);
    return { ...order, root: isShown ? path : "" };
  });
  readonly comparison: Signal<Comparison | null> = signal(null);
  readonly stacks: Signal<ComparedStacks | null> = signal(null);
  /** The call stack in the details. */
  readonly chosen: Signal<number | null> = signal(null);
  /** Why there is no comparison. */
  readonly failure: Signal<string | null> = signal(null);
  readonly b = computed(() => this.#b());
  readonly a = computed(() => this.#a());
  readonly #owners: ComparingOwners;
  /** The baseline and the row that is compared with it, unless the user chooses. */
  readonly #usual = computed(() => {
    const { rows, changes } = this.#owners.runs;
    void changes.value;
    const peakOf = ({ file, part }: Row) => {
      const load = file.load.peek();
      return load.state === "ready" ? load.loaded.parts[part]?.peak : null;
    };
    return pairOf(
      rows.value.map((row) => {
        const peak = peakOf(row);
        return { row, peak: peak ? BigInt(peak.raw) : null };
      }),
    );
  });
  readonly #open = signal(false);
  /** The visible rows of the table of call stacks. */
  readonly #visible = signal({ from: 0, count: 60 });
  /** Cached sides of each file. They are small, and evicted files need not be loaded again. */
  readonly #sides = new WeakMap<RankFile, Map<string, Promise<string | null>>>();
  readonly #stop: (() => void)[];
  #comparisons = 0;
  #pages = 0;

  constructor(owners: ComparingOwners) {
    this.#owners = owners;
    this.#stop = [effect(() => this.#follow()), effect(() => this.#page())];
  }

  destroy(): void {
    for (const stop of this.#stop) stop();
  }

  /** Starts or stops comparing: hidden views send no queries. */
  show(open: boolean): void {
    this.#open.value = open;
  }

  /** Makes a row side A. */
  choose(row: Row): void {
    this.#owners.viewSelection.pinned.value = pinOf(row);
  }

  /** Makes a row side B. */
  chooseOther(row: Row): void {
    const [a, b] = [this.a.peek(), this.b.peek()];
    // The sides are never the same row: the other side takes the place.
    if (b !== null && isSame(row, a)) this.choose(b);
    this.#owners.selection.look(row);
  }

  /** Makes the row in focus side A and the other row B. A second call swaps them. */
  pin(): void {
    const [a, focused] = [this.a.peek(), this.#focused()];
    if (focused === null) return;
    const pinned = a !== null && this.#isPinned(a);
    const other = a !== null && !isSame(a, focused) ? a : this.#neighbor(focused);
    const swaps = pinned && !isSame(a, focused);
    this.choose(focused);
    // The formerly pinned row gets the focus. With two rows, the other row is always B.
    const { runs, selection } = this.#owners;
    if (other && (swaps || runs.rows.peek().length === 2)) selection.look(other);
  }

  swap(): void {
    const [a, b] = [this.a.peek(), this.b.peek()];
    if (a === null || b === null) return;
    this.choose(b);
    this.#owners.selection.look(a);
  }

  /** Requests the visible rows of the table of call stacks. */
  readonly ask = (from: number, count: number): void => {
    const now = this.#visible.peek();
    if (now.from !== from || now.count !== count) this.#visible.value = { from, count };
  };

  /** Copies the comparison for a pull request. */
  async copyMarkdown(): Promise<boolean> {
    const text = await this.#answer("markdown", "markdown");
    const done = text !== null && (await copyText(text));
    this.#owners.status.announce(done ? "Comparison copied as Markdown" : CLIPBOARD_DENIED);
    return done;
  }

  /** Makes a node of the flame graph its root. */
  zoom(path: string): void {
    const { root: _, ...order } = this.tree.peek();
    this.#root.value = { order: JSON.stringify(order), path };
  }

  /** Zooms to a node of the flame graph and shows it in the details. */
  async openNode(node: number): Promise<void> {
    const tree = this.tree.peek();
    const found = await this.node(tree, node);
    if (!found || this.tree.peek() !== tree) return;
    this.chosen.value = null;
    this.zoom(found.path);
    this.#owners.selection.card.value = found.path === "" ? null : found.card;
    this.#owners.status.announce(`${found.title}, ${found.text}`);
  }

  readonly flame = (tree: ComparedTree): Promise<ComparedFlame | null> =>
    this.#answer("tree", { tree: { tree } });

  readonly boxes = (
    tree: ComparedTree,
    { x0, x1 }: Range,
    least: number,
  ): Promise<FlameBox[] | null> => this.#answer("boxes", { boxes: { tree, x0, x1, least } });

  readonly node = (tree: ComparedTree, node: number): Promise<ComparedNode | null> =>
    this.#answer("node", { node: { tree, node } });

  readonly tiles = (tree: ComparedTree, tiles: TileKey[]): Promise<ComparedTile[] | null> =>
    this.#answer("tiles", { tiles: { tree, tiles } });

  /** Shows a call stack in the details. */
  async openStack({ row }: ComparedStack): Promise<void> {
    this.chosen.value = row;
    const card = await this.#answer("detail", { stack: { row } });
    if (!card || this.chosen.peek() !== row) return;
    this.#owners.selection.card.value = card;
    this.#owners.status.announce(`${card.kind} ${card.title.text}`);
  }

  #a(): Row | null {
    const rows = this.#owners.runs.rows.value;
    const pinned = rows.find((row) => this.#isPinned(row));
    if (pinned) return pinned;
    const [baseline] = this.#usual.value ?? [];
    const b = this.b.value;
    return baseline && b ? counterpart(rows, baseline, b) : null;
  }

  #b(): Row | null {
    const rows = this.#owners.runs.rows.value;
    const focused = this.#focused();
    if (rows.some((row) => this.#isPinned(row))) return focused;
    const [baseline, other] = this.#usual.value ?? [];
    const isChosen =
      this.#owners.selection.chosen.value && focused && !isSame(focused, baseline ?? null);
    return isChosen ? focused : (other ?? focused);
  }

  #focused(): Row | null {
    const { runs, selection } = this.#owners;
    return runs.rows.value.find((row) => selection.isFocused(row)) ?? null;
  }

  #isPinned({ file, part }: Row): boolean {
    const pin = this.#owners.viewSelection.pinned.value;
    return pin?.path === file.path && pin.part === part;
  }

  /** The row before; after the first row, the next. */
  #neighbor(of: Row): Row | null {
    const rows = this.#owners.runs.rows.value;
    const at = rows.findIndex((row) => isSame(row, of));
    return rows[at - 1] ?? rows[at + 1] ?? null;
  }

  #follow(): void {
    const isOpen = this.#open.value;
    const [a, b] = isOpen ? [this.a.value, this.b.value] : [null, null];
    const band = this.band.value;
    const focus = this.#owners.selection.focus.value;
    const device =
      focus?.file === b?.file && focus?.part === b?.part ? (focus?.device ?? null) : null;
    const ready = a !== null && b !== null && !isSame(a, b);
    this.#comparisons += 1;
    const latest = this.#comparisons;
    untracked(() => {
      this.failure.value = null;
      this.chosen.value = null;
      this.group.value = "";
      this.zoom("");
      if (!ready) {
        this.comparison.value = null;
        this.stacks.value = null;
        return;
      }
      void this.#compare(a, b, band, device, () => latest === this.#comparisons);
    });
  }

  async #compare(
    a: Row,
    b: Row,
    band: BandKind,
    device: number | null,
    current: () => boolean,
  ): Promise<void> {
    try {
      const [before, after] = await Promise.all([
        this.#side(a, band, null),
        this.#side(b, band, device),
      ]);
      if (!current()) return;
      const none = before === null ? a : b;
      const missing = before === null || after === null;
      const sides = missing
        ? null
        : await this.#answer("comparison", { sides: { a: before, b: after } });
      if (!current()) return;
      this.comparison.value = sides;
      if (missing)
        this.failure.value = `Cannot compare ${rowName(none)}: it is unread or has no allocations.`;
    } catch (error) {
      if (current()) this.failure.value = failureOf(error).message;
    }
  }

  #side({ file, part }: Row, band: BandKind, device: number | null): Promise<string | null> {
    const known = this.#sides.get(file) ?? new Map<string, Promise<string | null>>();
    this.#sides.set(file, known);
    // Parts of a large file have sides of their own.
    const key = JSON.stringify([file.part, part, device, band]);
    const side = known.get(key) ?? this.#querySide(file, part, band, device);
    known.set(key, side);
    void side.then((text) => {
      if (text === null) known.delete(key);
    });
    return side;
  }

  async #querySide(
    file: RankFile,
    part: number,
    band: BandKind,
    device: number | null,
  ): Promise<string | null> {
    const { pool } = this.#owners.runs;
    const client = await pool.acquire(file);
    const load = file.load.peek();
    const of = load.state === "ready" ? load.loaded.parts[part] : undefined;
    const text =
      client && of && of.devices.length > 0
        ? await client.view({ part, device: device ?? of.defaultDevice }, "text", {
            side: { band },
          })
        : null;
    pool.release(file);
    return text;
  }

  #page(): void {
    const { from, count } = this.#visible.value;
    const [text, group, tree] = [this.text.value, this.group.value, this.tree.value];
    const query = { stacks: { text, group, tree, from, count } };
    if (this.comparison.value === null) return;
    this.#pages += 1;
    const latest = this.#pages;
    void this.#answer("stacks", query).then((page) => {
      if (latest === this.#pages) this.stacks.value = page;
    });
  }

  async #answer<K extends KindOf<CompareAnswer>>(
    kind: K,
    query: CompareQuery,
  ): Promise<ContentOf<CompareAnswer, K> | null> {
    return contentOf(await this.#owners.runs.coordinator.compare(query), kind);
  }
}
