// The answer to a query as a signal. The query runs again when the trace, its worker or the query
// changes. The previous answer stays until the next one comes, so that nothing flickers.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { Answer, Query } from "../generated/protocol.js";
import type { Selection } from "../selection.js";
import type { ContentOf, KindOf } from "./answers.js";

type AnswerKind = KindOf<Answer>;
export type AnswerOf<K extends AnswerKind> = ContentOf<Answer, K>;

export interface Resource<T> {
  readonly value: Signal<T | null>;
  /** Whether an answer is on its way. */
  readonly waiting: Signal<boolean>;
  stop(): void;
}

/** `query` is tracked. Null sends no query and clears the answer. */
export function resource<K extends AnswerKind>(
  selection: Selection,
  kind: K,
  query: () => Query | null,
): Resource<AnswerOf<K>> {
  const value = signal<AnswerOf<K> | null>(null);
  const waiting = signal(false);
  let sent = 0;
  let answered = "";
  const stop = effect(() => {
    const { target: from } = selection;
    const trace = selection.trace.value;
    const next = from ? query() : null;
    sent += 1;
    const latest = sent;
    const name = trace
      ? `${trace.file.planned.file}/${trace.partIndex}/${trace.device?.device}`
      : "";
    untracked(() => {
      // An answer about another trace is stale.
      if (name !== answered || (from && next === null)) value.value = null;
      answered = name;
      waiting.value = from !== null && next !== null;
      if (!from || next === null) return;
      void from.client.view(from.target, kind, next).then((answer) => {
        if (latest !== sent) return;
        waiting.value = false;
        if (answer !== null) value.value = answer;
      });
    });
  });
  return {
    value,
    waiting,
    stop: () => {
      sent += 1;
      stop();
    },
  };
}

/** Resolves when the focused trace has a worker. */
export function readable(selection: Selection): Promise<void> {
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (selection.target === null) return;
      resolve();
      queueMicrotask(() => stop());
    });
  });
}

export function stopAll(stop: readonly (() => void)[]): void {
  for (const end of stop) end();
}
