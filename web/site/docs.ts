// The documents: a page for each Markdown file of the list, made from one template, with a search.
// Those of the folder `reference` are written by `cargo xtask docs`, from what the program tells of
// itself.

import { existsSync, readFileSync } from "node:fs";
import { join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Marked, type Token, type Tokens } from "marked";
import MiniSearch from "minisearch";
import type { Plugin } from "vite";
import { FIELDS, type Section } from "./src/search.ts";

interface Page {
  /** The folder below `docs/`; empty for the first page. */
  slug: string;
  title: string;
  /** The Markdown file, from the root of the repository. */
  from: string;
}

const SITE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = resolve(SITE, "../..");
const REFERENCE = "web/site/reference";

const page = (slug: string, title: string, from: string): Page => ({ slug, title, from });
const GROUPS: { name: string; pages: Page[] }[] = [
  {
    name: "Guides",
    pages: [
      page("", "Start", "docs/start.md"),
      page("oom", "Out of memory", "docs/oom.md"),
      page("record", "Record", "docs/record.md"),
      page("ask", "Ask", "docs/ask.md"),
      page("predict", "Predict and prove", "docs/predict.md"),
      page("python", "Python", "docs/python.md"),
      page("serving", "Serving", "docs/serving.md"),
      page("fleets", "Clusters and fleets", "docs/fleets.md"),
      page("embedding", "Embedding", "docs/embedding.md"),
    ],
  },
  {
    name: "Reference",
    pages: [
      page("findings", "Findings", `${REFERENCE}/findings.md`),
      page("warnings", "Warnings and errors", `${REFERENCE}/warnings.md`),
      page("changes", "Changes of the program", `${REFERENCE}/changes.md`),
      page("commands", "Commands", `${REFERENCE}/commands.md`),
      page("json", "JSON", `${REFERENCE}/json.md`),
      page("tables", "Tables and queries", `${REFERENCE}/tables.md`),
      page("numbers", "Numbers", "crates/vramscope-trace/NUMBERS.md"),
      page("inference", "Inference", "crates/vramscope-inference/INFERENCE.md"),
      page("predictions", "Predictions, settings", "crates/vramscope-inference/PREDICTIONS.md"),
      page("format", "Snapshot format", "crates/vramscope-snapshot/FORMAT.md"),
      page("sidecar", "File beside a snapshot", "crates/vramscope-report/SIDECAR.md"),
    ],
  },
  {
    name: "Project",
    pages: [
      page("security", "Security", "SECURITY.md"),
      page("site", "Host the page", "SITE.md"),
      page("changelog", "Changelog", "CHANGELOG.md"),
    ],
  },
];
const PAGES = GROUPS.flatMap(({ pages }) => pages);
/** Files that documents link to, copied beside them. */
const FILES = ["ci/dry-run.yml", "ci/pull-request.yml"];

const sourceOf = ({ from }: Page) => join(ROOT, from);
const pathOf = ({ slug }: Page) => posix.join("docs", slug, "index.html");

const escaped = (words: string) =>
  words
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/** The words of tokens, without their marks. */
function wordsOf(tokens: Token[]): string {
  const words = (token: Token): string => {
    if (token.type === "html") return "";
    if (token.type === "table") {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows]
        .flat()
        .map((cell) => wordsOf(cell.tokens))
        .join(" ");
    }
    if (token.type === "list")
      return (token as Tokens.List).items.map((item) => wordsOf(item.tokens)).join(" ");
    if ("tokens" in token && token.tokens) return wordsOf(token.tokens);
    return "text" in token ? token.text : "";
  };
  return tokens.map(words).join("");
}

/** Anchors of headings, as GitHub derives them. A repeated heading gets a number. */
function anchors(): (title: string) => string {
  const known = new Set<string>();
  return (title) => {
    const base = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
    let anchor = base;
    for (let number = 1; known.has(anchor); number += 1) anchor = `${base}-${number}`;
    known.add(anchor);
    return anchor;
  };
}

/** The address of a link, relative to the page; nothing for a file that the site lacks. */
function address(target: string, of: Page): string | undefined {
  if (/^[a-z]+:|^#/.test(target)) return target;
  const [path = "", anchor] = target.split("#");
  const from = posix.dirname(of.from);
  const whole = posix.join(from === REFERENCE ? REFERENCE : from, path);
  const known =
    PAGES.find((one) => one.from === whole) ?? (from === REFERENCE ? bySlug(path) : undefined);
  const found = known ? pathOf(known).replace(/index\.html$/, "") : copied(whole);
  if (found === undefined) return undefined;
  const there = posix.relative(posix.dirname(pathOf(of)), found) || ".";
  return `${there}${found.endsWith("/") ? "/" : ""}${anchor ? `#${anchor}` : ""}`;
}

const bySlug = (path: string) => PAGES.find(({ slug }) => `${slug}.md` === path);
const copied = (path: string) => FILES.map((file) => `docs/${file}`).find((file) => file === path);

/** The commands of a console stand out from what they print. */
const consoleOf = (text: string) =>
  escaped(text).replace(/^\$ .*(?:\\\n.*)*$/gm, (line) => `<b>${line}</b>`);

interface Made {
  html: string;
  /** The headings of the second level. */
  contents: { id: string; words: string }[];
  sections: Section[];
}

/** The text of a page with its sections for the search. */
function made(of: Page): Made {
  const contents: Made["contents"] = [];
  const sections: Section[] = [];
  const anchor = anchors();
  const markdown = new Marked();
  const text = readFileSync(sourceOf(of), "utf8");
  let open: { id: string; heading: string; words: string[] } | undefined;
  const close = () => {
    if (!open) return;
    const { id, heading, words } = open;
    const address = posix.join(of.slug, "/") + (id ? `#${id}` : "");
    const body = words.join(" ").replace(/\s+/g, " ").trim();
    sections.push({ id: address.replace(/^\//, ""), page: of.title, heading, text: body });
  };
  markdown.use({
    renderer: {
      heading({ tokens, depth }) {
        const words = wordsOf(tokens);
        const id = anchor(words);
        if (depth === 2) contents.push({ id, words });
        const inside = this.parser.parseInline(tokens);
        const link =
          depth === 1
            ? ""
            : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
        return `<h${depth} id="${id}">${inside}${link}</h${depth}>\n`;
      },
      html: () => "",
      link({ href, tokens }) {
        const inside = this.parser.parseInline(tokens);
        const to = address(href, of);
        return to === undefined ? inside : `<a href="${escaped(to)}">${inside}</a>`;
      },
      code({ text, lang }) {
        const inside = lang === "console" ? consoleOf(text) : escaped(text);
        return `<figure><pre><code>${inside}\n</code></pre></figure>\n`;
      },
      table(token) {
        const cells = (row: Tokens.TableCell[], tag: string) =>
          row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("");
        const head = token.header.some(({ text }) => text !== "")
          ? `<thead><tr>${cells(token.header, "th")}</tr></thead>`
          : "";
        const rows = token.rows.map((row) => `<tr>${cells(row, "td")}</tr>`).join("\n");
        const table = `<table>${head}<tbody>${rows}</tbody></table>`;
        return `<div class="table" tabindex="0">${table}</div>\n`;
      },
    },
  });
  const tokens = markdown.lexer(text);
  const inSearch = anchors();
  for (const token of tokens) {
    if (token.type === "heading") {
      close();
      const words = wordsOf(token.tokens ?? []);
      const id = inSearch(words);
      open = {
        id: token.depth === 1 ? "" : id,
        heading: token.depth === 1 ? "" : words,
        words: [],
      };
    } else open?.words.push(wordsOf([token]));
  }
  close();
  return { html: markdown.parser(tokens), contents, sections };
}

const template = () => readFileSync(join(SITE, "docs/page.html"), "utf8");

function navigation(of: Page, contents: Made["contents"], pages: Page[]): string {
  const to = (one: Page) => {
    const there = posix.relative(posix.dirname(pathOf(of)), posix.dirname(pathOf(one)));
    return `./${there}${there ? "/" : ""}`;
  };
  const sections = contents.map(
    ({ id, words }) => `<li><a href="#${id}">${escaped(words)}</a></li>`,
  );
  const inside = sections.length > 1 ? `<ul>${sections.join("")}</ul>` : "";
  const item = (one: Page) =>
    one === of
      ? `<li><a href="${to(one)}" aria-current="page">${one.title}</a>${inside}</li>`
      : `<li><a href="${to(one)}">${one.title}</a></li>`;
  return GROUPS.map(({ name, pages: all }) => {
    const shown = all.filter((one) => pages.includes(one));
    return `<p>${name}</p><ul>${shown.map(item).join("\n")}</ul>`;
  }).join("\n");
}

function whole(of: Page, pages: Page[]): string {
  const { html, contents } = made(of);
  const values: Record<string, string> = {
    title: of.title,
    root: of.slug ? "../../" : "../",
    docs: of.slug ? "../" : "./",
    navigation: navigation(of, contents, pages),
    text: html,
  };
  return template().replace(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? "");
}

/** The index of the search, as a text that the page reads. */
function index(pages: Page[]): string {
  const search = new MiniSearch<Section>(FIELDS);
  search.addAll(pages.flatMap((one) => made(one).sections));
  return JSON.stringify(search);
}

/** The pages whose source is there. */
const present = () => PAGES.filter((one) => existsSync(sourceOf(one)));

/** The pages, as inputs of the build. */
export const documentPages = Object.fromEntries(
  PAGES.map((one) => [`docs-${one.slug || "start"}`, join(SITE, pathOf(one))]),
);

const pageAt = (path: string) => PAGES.find((one) => pathOf(one) === path);
const idOf = (id: string) => (id.startsWith(SITE) ? relative(SITE, id).replaceAll("\\", "/") : "");

export function documents(): Plugin {
  return {
    name: "vramscope-documents",
    enforce: "pre",
    configResolved({ command }) {
      // The development server shows what is there.
      const absent = PAGES.find((one) => !existsSync(sourceOf(one)));
      if (absent && command === "build")
        throw new Error(`${absent.from} is missing: run \`cargo xtask docs\``);
    },
    resolveId: (id) => (pageAt(idOf(id)) ? id : null),
    load(id) {
      const found = pageAt(idOf(id));
      return found ? whole(found, present()) : null;
    },
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "docs/search.json", source: index(present()) });
      for (const file of FILES)
        this.emitFile({
          type: "asset",
          fileName: `docs/${file}`,
          source: readFileSync(join(ROOT, "docs", file)),
        });
    },
    configureServer({ middlewares, transformIndexHtml }) {
      middlewares.use((request, response, next) => {
        const path = (request.url ?? "/").replace(/^\/|[?#].*/g, "").replace(/\/$/, "/index.html");
        const found = pageAt(path);
        if (path === "docs/search.json") response.end(index(present()));
        else if (!found || !existsSync(sourceOf(found))) next();
        else
          transformIndexHtml(`/${path}`, whole(found, present())).then((html) => {
            response.setHeader("Content-Type", "text/html; charset=utf-8");
            response.end(html);
          }, next);
      });
    },
  };
}
