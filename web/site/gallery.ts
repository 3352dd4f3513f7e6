// The gallery: a page for each case of gallery/cases.json, made from one template, and an index.
// The recordings are copied from test_data, where tests read them.

import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "vite";

interface Case {
  /** The folder of its page. */
  slug: string;
  title: string;
  /** A figure of the story and what it says, for the card. */
  figure: string;
  says: string;
  /** A text of the viewer at `view`, which names the place. A test looks for it. */
  shows: string;
  /** What recorded it, as test_data/README.md says. */
  recorded: string;
  /** Recordings in test_data that the viewer opens. */
  files: string[];
  /** Recordings of the changed program, which the commands read. */
  twins: string[];
  view: string;
  /** More of the viewer's state: docs/embedding.md has the fields. */
  state: string;
  /** Arguments of `vramscope`, in a folder with the recordings. A test runs them. */
  commands: string[];
  /** Five sentences: program, observation, place, cause, cure. */
  story: string[];
}

const SITE = fileURLToPath(new URL(".", import.meta.url));
const TEST_DATA = join(SITE, "../../test_data");
const LABELS = ["Program", "Seen", "Place", "Cause", "Change"];

const text = (name: string) => readFileSync(join(SITE, "gallery", name), "utf8");
const cases: Case[] = JSON.parse(text("cases.json"));

const recordings = cases.flatMap(({ slug, files, twins }) =>
  [...files, ...twins].map((from) => ({ to: `gallery/${slug}/${basename(from)}`, from })),
);

const escaped = (words: string) =>
  words
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/** A sentence with its code between backticks. */
const prose = (words: string) => escaped(words).replace(/`([^`]+)`/g, "<code>$1</code>");

/** The template with its values, which are HTML. */
function filled(template: string, values: Record<string, string>): string {
  return template.replace(/\{\{([\w-]+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`The template of the gallery has no ${name}.`);
    return value;
  });
}

const card = ({ slug, title, figure, says, recorded }: Case) => `<li>
          <a href="./${slug}/">
            <span class="title">${escaped(title)}</span>
            <span class="figure">${escaped(figure)}</span>
            <span class="says">${escaped(says)}</span>
            <span class="recorded">${escaped(recorded)}</span>
          </a>
        </li>`;

const indexPage = () => filled(text("index.html"), { cards: cases.map(card).join("\n") });

function casePage(at: number): string {
  const one = cases[at];
  const before = cases.at(at - 1);
  const after = cases[(at + 1) % cases.length];
  if (!one || !before || !after) throw new Error(`The gallery has no case ${at}.`);
  const { slug, title, files, twins, view, state } = one;
  const whole = new URLSearchParams(state);
  whole.set("view", view);
  for (const file of files) whole.append("url", `../gallery/${slug}/${basename(file)}`);
  const link = (file: string) =>
    `<a href="./${basename(file)}" download>${escaped(basename(file))}</a>`;
  const story = one.story.map(
    (words, index) => `<div><dt>${LABELS[index]}</dt><dd>${prose(words)}</dd></div>`,
  );
  return filled(text("case.html"), {
    title: escaped(title),
    description: escaped(one.story[1] ?? title),
    recorded: escaped(`Recorded by ${one.recorded}`),
    story: story.join("\n"),
    files: [...files, ...twins].map(link).join(" "),
    whole: escaped(`../../open/#${whole}`),
    src: files.map((file) => `./${basename(file)}`).join(" "),
    view,
    state: escaped(state),
    commands: one.commands.map((line) => escaped(`vramscope ${line}`)).join("\n"),
    "before-slug": before.slug,
    "before-title": escaped(before.title),
    "after-slug": after.slug,
    "after-title": escaped(after.title),
  });
}

/** The page at this path of the site, such as `gallery/leak/index.html`. */
function pageAt(path: string): string | undefined {
  if (path === "gallery/index.html") return indexPage();
  const at = cases.findIndex(({ slug }) => path === `gallery/${slug}/index.html`);
  return at < 0 ? undefined : casePage(at);
}

/** The pages, as inputs of the build. */
export const galleryPages = Object.fromEntries(
  ["gallery", ...cases.map(({ slug }) => `gallery/${slug}`)].map((folder) => [
    folder.replace("/", "-"),
    join(SITE, folder, "index.html"),
  ]),
);

const isPage = (id: string) => Object.values(galleryPages).includes(id);
const pathOf = (id: string) => id.slice(SITE.length);

export function gallery(): Plugin {
  return {
    name: "vramscope-gallery",
    enforce: "pre",
    resolveId: (id) => (isPage(id) ? id : null),
    load: (id) => (isPage(id) ? pageAt(pathOf(id)) : null),
    generateBundle() {
      for (const { from, to } of recordings)
        this.emitFile({ type: "asset", fileName: to, source: readFileSync(join(TEST_DATA, from)) });
    },
    configureServer({ middlewares, transformIndexHtml }) {
      middlewares.use((request, response, next) => {
        const path = (request.url ?? "/").replace(/^\/|[?#].*/g, "").replace(/\/$/, "/index.html");
        const found = recordings.find(({ to }) => to === path);
        const page = pageAt(path);
        if (found) response.end(readFileSync(join(TEST_DATA, found.from)));
        else if (page === undefined) next();
        else
          transformIndexHtml(`/${path}`, page).then((html) => {
            response.setHeader("Content-Type", "text/html; charset=utf-8");
            response.end(html);
          }, next);
      });
    },
  };
}
