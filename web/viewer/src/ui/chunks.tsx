// A long list as chunks of rows, of which only those near the visible part have content. A list of
// usual length has all its rows, so that the browser's search finds them.

import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Rows of a chunk. */
const CHUNK = 40;
/** Longer lists are usually rendered in part. */
const MAX_WHOLE = 200;
/** Distance in view heights at which chunks get their content. */
const NEAR = "100%";

/** Tells elements whether they are near the visible part of a scroller. */
class Nearness {
  readonly #observer: IntersectionObserver;
  readonly #tell = new Map<Element, (isNear: boolean) => void>();

  constructor(root: Element | null) {
    this.#observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) this.#tell.get(target)?.(isIntersecting);
      },
      { root, rootMargin: NEAR },
    );
  }

  watch(element: Element, tell: (isNear: boolean) => void): () => void {
    this.#tell.set(element, tell);
    this.#observer.observe(element);
    return () => {
      this.#observer.unobserve(element);
      this.#tell.delete(element);
    };
  }
}

interface ChunksProperties {
  /** The number of rows. */
  count: number;
  /** The index of a row that is always rendered, -1 for none. */
  pinned: number;
  scroller: RefObject<HTMLElement | null>;
  /** Longer lists are rendered in part. */
  whole?: number;
  /** `body` is a part of a table. */
  of: "list" | "body";
  row: (index: number) => ComponentChildren;
}

/** Empty chunks have the number of their rows in `--rows`, for their size. */
export function Chunks(properties: ChunksProperties) {
  const { count, pinned, scroller, whole = MAX_WHOLE, of, row } = properties;
  const nearness = useRef<Nearness | null>(null);
  const watch = (element: Element, tell: (isNear: boolean) => void) => {
    nearness.current ??= new Nearness(scroller.current);
    return nearness.current.watch(element, tell);
  };
  const rows = (from: number, end: number) =>
    Array.from({ length: end - from }, (_, index) => row(from + index));
  if (count <= whole) {
    const all = rows(0, count);
    // biome-ignore lint/complexity/noUselessFragments: a component returns an element
    return of === "body" ? <tbody>{all}</tbody> : <>{all}</>;
  }
  return (
    <>
      {Array.from({ length: Math.ceil(count / CHUNK) }, (_, chunk) => {
        const from = chunk * CHUNK;
        const end = Math.min(count, from + CHUNK);
        return (
          <Chunk
            key={chunk}
            of={of}
            first={chunk === 0}
            pinned={pinned >= from && pinned < end}
            watch={watch}
            rows={end - from}
            content={() => rows(from, end)}
          />
        );
      })}
    </>
  );
}

interface ChunkProperties {
  of: "list" | "body";
  first: boolean;
  pinned: boolean;
  watch: (element: Element, tell: (isNear: boolean) => void) => () => void;
  rows: number;
  content: () => ComponentChildren;
}

function Chunk({ of, first, pinned, watch, rows, content }: ChunkProperties) {
  const [isNear, setNear] = useState(first);
  const element = useRef<HTMLElement & HTMLTableSectionElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: one observer serves all renders
  useEffect(() => (element.current ? watch(element.current, setNear) : undefined), []);
  const isShown = isNear || pinned;
  const style = isShown ? undefined : { "--rows": rows };
  const children = isShown && content();
  return of === "body" ? (
    <tbody class="chunk" ref={element} style={style}>
      {children}
    </tbody>
  ) : (
    <div class="chunk" role="presentation" ref={element} style={style}>
      {children}
    </div>
  );
}
