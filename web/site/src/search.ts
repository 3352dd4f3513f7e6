// What the build and the page agree on about the index of the documents.

/** A section of a document. */
export interface Section {
  /** Its address below `docs/`. */
  id: string;
  /** The title of its page. */
  page: string;
  /** Its heading; empty for the part before the first. */
  heading: string;
  text: string;
}

/** Words, and the parts of those with underscores: `dead_at_peak` is found by `peak`, too. */
const tokenize = (text: string) =>
  (text.match(/[\p{L}\p{N}_]+/gu) ?? []).flatMap((word) =>
    word.includes("_") ? [word, ...word.split("_").filter((part) => part !== "")] : [word],
  );

/** What is searched, and what a result keeps. */
export const FIELDS = {
  tokenize,
  fields: ["page", "heading", "text"],
  storeFields: ["page", "heading", "text"],
};
