// The filters: terms that choose a group of blocks in all views. Rust parses them and says what
// they mean.

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";

/** A filter in two parts, for display: `site` and `gpt.py:43 forward`. */
export interface TermParts {
  /** Empty for free text. */
  key: string;
  value: string;
}

export class Filters {
  /** The terms: `site:gpt.py:43 forward`, `category:activation`, `>512MiB`, or free text. */
  readonly terms: Signal<readonly string[]> = signal([]);
  /** The terms and the search as one text, as queries take it; empty for all blocks. */
  readonly text: ReadonlySignal<string>;

  constructor(search: ReadonlySignal<string>) {
    this.text = computed(() => {
      const filters = termsText(this.terms.value);
      return [filters, search.value.trim()].filter((text) => text !== "").join(" ");
    });
  }

  /** Replaces all terms. Equal terms count once. */
  set(terms: Iterable<string>): void {
    const next = [...new Set([...terms].map(plain).filter((term) => term !== ""))];
    const same = this.terms.peek();
    if (next.length !== same.length || next.some((term, index) => term !== same[index]))
      this.terms.value = next;
  }

  add(...terms: string[]): void {
    this.set([...this.terms.peek(), ...terms]);
  }

  remove(term: string): void {
    this.set(this.terms.peek().filter((one) => one !== plain(term)));
  }

  clear(): void {
    this.set([]);
  }
}

/** Quotes hold terms together, so that terms have none. */
const plain = (term: string) => term.replaceAll('"', "").trim();

/** Terms as one text: those with spaces are in quotes. */
export const termsText = (terms: Iterable<string>) =>
  [...terms].map((term) => (/\s/.test(term) ? `"${term}"` : term)).join(" ");

/** The terms of a text. Spaces outside of quotes separate them. */
export const termsOf = (text: string): string[] =>
  [...text.matchAll(/(?:"[^"]*"?|[^\s"])+/g)].map(([term]) => plain(term)).filter((t) => t !== "");

const KEYED =
  /^(site|via|path|leaf|category|phase|step|stream|pool|size|lifetime|rank|module|finding):(.+)$/i;

/** The key and the value of a term, for display. */
export function partsOf(term: string): TermParts {
  const [, key = "", value = term] = KEYED.exec(term) ?? [];
  return { key: key.toLowerCase(), value };
}
