// An answer that follows its question: asked again when the trace, its worker or the question
// changes, and kept until the next one has come, so that nothing flickers.

import { effect, type Signal, signal, untracked } from "@preact/signals";
import type { Answer, Query } from "../generated/protocol.js";
import type { Session } from "../session.js";

type OneKeyOf<T> = T extends unknown ? keyof T : never;
type AnswerKind = OneKeyOf<Answer>;
export type AnswerOf<K extends AnswerKind> = Extract<Answer, Record<K, unknown>>[K];

export interface Resource<T> {
  readonly value: Signal<T | null>;
  /** True from the question to its answer. */
  readonly waiting: Signal<boolean>;
  stop(): void;
}

/** `query` is tracked; null asks nothing and clears the answer. */
export function resource<K extends AnswerKind>(
  session: Session,
  kind: K,
  query: () => Query | null,
): Resource<AnswerOf<K>> {
  const value = signal<AnswerOf<K> | null>(null);
  const waiting = signal(false);
  let asked = 0;
  let of = "";
  const stop = effect(() => {
    const { asked: from } = session;
    const trace = session.trace.value;
    const question = from ? query() : null;
    asked += 1;
    const latest = asked;
    const name = trace
      ? `${trace.file.planned.file}/${trace.partIndex}/${trace.device?.device}`
      : "";
    untracked(() => {
      // Of another trace the old answer says nothing.
      if (name !== of || (from && question === null)) value.value = null;
      of = name;
      if (!from || question === null) return;
      waiting.value = true;
      void from.client.view(from.target, kind, question).then((answer) => {
        if (latest !== asked) return;
        waiting.value = false;
        if (answer !== null) value.value = answer;
      });
    });
  });
  return {
    value,
    waiting,
    stop: () => {
      asked += 1;
      stop();
    },
  };
}

/** Settled when the trace in focus can be asked. */
export function readable(session: Session): Promise<void> {
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (session.asked === null) return;
      resolve();
      queueMicrotask(() => stop());
    });
  });
}

/** Ends what a view has begun. */
export function endAll(stop: readonly (() => void)[]): void {
  for (const end of stop) end();
}
