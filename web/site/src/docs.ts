// A page of the documents: copy buttons, and the search, whose index is loaded at the first key.

import MiniSearch from "minisearch";
import "./copy.js";
import { FIELDS, type Section } from "./search.js";

/** Results that are shown. */
const SHOWN = 12;
/** Characters of a section around what was found. */
const AROUND = 140;
/** Findings, warnings and guides come before the tables of fields. */
const WEIGHTS: Record<string, number> = { findings: 2, warnings: 1.5, json: 0.4, changelog: 0.4 };

const field = document.querySelector<HTMLInputElement>("header input");
const results = document.querySelector<HTMLElement>("#results");
const docs = field?.closest("[data-docs]")?.getAttribute("data-docs") ?? "./";

let loading: Promise<MiniSearch<Section>> | undefined;
const load = () => {
  loading ??= fetch(`${docs}search.json`)
    .then((response) => response.text())
    .then((text) => MiniSearch.loadJSON<Section>(text, FIELDS));
  return loading;
};

interface Found {
  address: string;
  page: string;
  heading: string;
  text: string;
}

/** The sections with all words, else those with some. The words in a row count most. */
function found(search: MiniSearch<Section>, words: string): Found[] {
  const phrase = words.trim().toLowerCase();
  const options = {
    prefix: true,
    fuzzy: (term: string) => (term.length > 5 ? 0.2 : false),
    boost: { heading: 4, page: 2 },
    boostDocument: (id: string, _: string, kept?: Record<string, unknown>) =>
      (WEIGHTS[id.split("/")[0] ?? ""] ?? 1) *
      (Object.values(kept ?? {})
        .join(" ")
        .toLowerCase()
        .includes(phrase)
        ? 3
        : 1),
  };
  const all = search.search(words, { ...options, combineWith: "AND" });
  const some = all.length > 0 ? all : search.search(words, options);
  return some.slice(0, SHOWN).map(({ id, page, heading, text }) => ({
    address: id,
    page,
    heading,
    text: around(text, phrase),
  }));
}

/** The text around the first of the words. */
function around(text: string, phrase: string): string {
  const low = text.toLowerCase();
  const places = [phrase, ...phrase.split(/\s+/)].map((word) => low.indexOf(word));
  const at = Math.max(0, (places.find((place) => place >= 0) ?? 0) - AROUND / 3);
  const begin = at === 0 ? 0 : text.indexOf(" ", at) + 1;
  const end = begin + AROUND;
  return `${begin > 0 ? "…" : ""}${text.slice(begin, end)}${end < text.length ? "…" : ""}`;
}

function shown({ address, page, heading, text }: Found): HTMLElement {
  const link = document.createElement("a");
  link.href = docs + address;
  const title = document.createElement("strong");
  title.textContent = heading === "" ? page : `${page} › ${heading}`;
  const excerpt = document.createElement("span");
  excerpt.textContent = text;
  link.append(title, excerpt);
  return link;
}

/** The number of the last question: an earlier answer may come later. */
let asked = 0;

async function answer(input: HTMLInputElement, list: HTMLElement): Promise<void> {
  asked += 1;
  const number = asked;
  const words = input.value;
  if (words.trim().length < 2) {
    list.hidden = true;
    return;
  }
  const rows = await load().then(
    (search) => found(search, words).map(shown),
    () => [document.createTextNode("The index cannot be loaded. Reload the page.")],
  );
  if (number !== asked) return;
  list.replaceChildren(...(rows.length > 0 ? rows : [document.createTextNode("Nothing found.")]));
  list.hidden = false;
}

/** Arrow keys go through the results. */
function step(input: HTMLInputElement, list: HTMLElement, by: number): void {
  const stops: (Element | null)[] = [input, ...list.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  const next = stops[Math.min(stops.length - 1, Math.max(0, at + by))];
  if (at >= 0 && next instanceof HTMLElement) next.focus();
}

if (field && results) {
  field.disabled = false;
  field.addEventListener("focus", () => void load().catch(() => undefined));
  field.addEventListener("input", () => void answer(field, results));
  document.addEventListener("keydown", (event) => {
    const isInside = event.target instanceof Node && field.parentElement?.contains(event.target);
    if (event.key === "/" && !isInside) field.focus();
    else if (event.key === "Escape" && isInside) {
      results.hidden = true;
      field.focus();
    } else if (event.key === "ArrowDown" && isInside) step(field, results, 1);
    else if (event.key === "ArrowUp" && isInside) step(field, results, -1);
    else if (event.key === "Enter" && event.target === field)
      results.querySelector<HTMLAnchorElement>("a")?.click();
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Node && !field.parentElement?.contains(event.target))
      results.hidden = true;
  });
  results.addEventListener("click", () => {
    results.hidden = true;
  });
}

// The list of pages is unfolded where it has a column of its own.
const list = document.querySelector<HTMLDetailsElement>("nav details");
const isWide = matchMedia("(min-width: 900px)");
const unfold = () => {
  if (list) list.open = isWide.matches;
};
isWide.addEventListener("change", unfold);
unfold();
