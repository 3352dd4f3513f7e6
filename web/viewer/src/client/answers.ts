// Answers of the engine are objects with one field, whose name is the kind.

/** The kinds of a union of answers or queries. */
export type KindOf<T> = T extends unknown ? keyof T : never;

/** The content of an answer of this kind. */
export type ContentOf<T, K extends KindOf<T>> = Extract<T, Record<K, unknown>>[K];

/** The content of an answer; null if it has another kind. */
export function contentOf<T extends object, K extends KindOf<T>>(
  answer: T,
  kind: K,
): ContentOf<T, K> | null {
  const isOfKind = (any: T): any is Extract<T, Record<K, unknown>> => kind in any;
  return isOfKind(answer) ? answer[kind] : null;
}
