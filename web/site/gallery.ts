// Build step for the gallery: a page for each case of gallery/cases.json, from one template, with
// the recordings of test_data/ beside it.

import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Plugin } from "vite";

interface Case {
  /** The folder of the page. */
  name: string;
  title: string;
  /** Recordings below test_data/; of a comparison, the one before first. */
  files: string[];
  /** The place that shows the answer. */
  view: string;
  /** What prints the figures of the story. */
  commands: string[];
  /** With which release, on what. */
  recorded: string;
  /** Five sentences. */
  story: string[];
}

const DATA = new URL("../../test_data/", import.meta.url);
const CASES = JSON.parse(
  readFileSync(new URL("gallery/cases.json", import.meta.url), "utf8"),
) as Case[];

const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

const paragraphs = (of: readonly string[]) =>
  of.map((text) => `<p>${escaped(text)}</p>`).join("\n");

/** The names of the files. Recordings of one name in two folders get the folder in front. */
function namesOf({ files }: Case): string[] {
  const isTwice = new Set(files.map((file) => basename(file))).size < files.length;
  return files.map((file) =>
    isTwice ? `${basename(dirname(file))}-${basename(file)}` : basename(file),
  );
}

/** The template, with these texts in place of their names: `{{title}}`. */
function filled(template: string, texts: Record<string, string>): string {
  return template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => texts[name] ?? whole);
}

function link(of: Case): string {
  const names = namesOf(of).map((name) => `url=../gallery/${of.name}/${encodeURIComponent(name)}`);
  return `../../open/#${[...names, `view=${of.view}`].join("&")}`;
}

function page(template: string, of: Case, next: Case | undefined): string {
  const files = namesOf(of).map((name) => `<a href="./${name}" download>${escaped(name)}</a>`);
  return filled(template, {
    title: escaped(of.title),
    story: paragraphs(of.story),
    recorded: escaped(of.recorded),
    commands: escaped(of.commands.join("\n")),
    files: files.join(", "),
    open: escaped(link(of)),
    view: of.view,
    next: next ? `<a href="../${next.name}/">Next: ${escaped(next.title)}</a>` : "<span></span>",
  });
}

const card = ({ name, title, story: [, seen = ""], recorded }: Case) => `
        <li>
          <a href="./${name}/">
            <h2>${escaped(title)}</h2>
            <p>${escaped(seen)}</p>
            <p class="recorded">${escaped(recorded)}</p>
          </a>
        </li>`;

export function gallery(): Plugin {
  let out = "";
  return {
    name: "vramscope-gallery",
    apply: "build",
    configResolved({ root, build }) {
      out = join(resolve(root, build.outDir), "gallery");
    },
    closeBundle() {
      const template = readFileSync(join(out, "case/index.html"), "utf8");
      rmSync(join(out, "case"), { recursive: true });
      for (const [index, of] of CASES.entries()) {
        const folder = join(out, of.name);
        mkdirSync(folder, { recursive: true });
        const files = namesOf(of).map((name, at) => {
          const from = new URL(of.files[at] ?? "", DATA);
          cpSync(from, join(folder, name));
          return { path: name.replace(/\.gz$/, ""), url: name, bytes: statSync(from).size };
        });
        const run = { title: of.name, files };
        writeFileSync(join(folder, "index.json"), JSON.stringify(run));
        writeFileSync(join(folder, "index.html"), page(template, of, CASES[index + 1]));
      }
      const index = join(out, "index.html");
      const cases = CASES.map(card).join("");
      writeFileSync(index, filled(readFileSync(index, "utf8"), { cases }));
    },
  };
}
