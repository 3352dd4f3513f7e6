// Makes a report in one HTML file, as `vramscope export --as html --source` does: from the same
// template, and with text that the workers write.

import { fileName } from "../client/files.js";
import type { RankClient } from "../client/rank-client.js";
import type { Source } from "../client/rank-file.js";
import type { Loaded } from "../generated/protocol.js";
import type { Uses } from "../stores.js";
import { VERSION } from "../version.js";

/** The largest file that fits into a page, as text. */
const MAX_BYTES = 200 << 20;

/** What becomes of the files. */
export interface ReportOptions {
  /** The page around the text, and the viewer's script beside it. */
  template: URL;
  /** Told before each file. */
  progress: (text: string) => void;
  signal: AbortSignal;
}

/** A file of the report. */
interface Embedded {
  name: string;
  /** A snapshot is compressed. */
  packed: Uint8Array<ArrayBuffer>;
}

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string) => text.replace(/[&<>"']/g, (letter) => ESCAPES[letter] ?? letter);

async function fetched(url: URL, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { signal }).catch(() => null);
  if (!response?.ok) throw new Error(`${url.pathname} cannot be fetched`);
  return response;
}

async function gzip(bytes: Blob): Promise<Uint8Array<ArrayBuffer>> {
  const packed = bytes.stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

/** Base64 in pieces that the arguments of a call can hold. */
function base64(bytes: Uint8Array): string {
  const piece = 3 << 12;
  let out = "";
  for (let at = 0; at < bytes.length; at += piece)
    out += btoa(String.fromCharCode(...bytes.subarray(at, at + piece)));
  return out;
}

const script = (attribute: string, bytes: Uint8Array) =>
  `<script type="text/plain" ${attribute}>${base64(bytes)}</script>\n`;

/** The bytes of a file that was opened. */
async function bytesOf(
  from: Source["from"],
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const whole =
    typeof from === "string" ? await fetched(new URL(from), signal) : new Response(from);
  return new Uint8Array(await whole.arrayBuffer());
}

const isPacked = ([first, second]: Uint8Array) => first === 0x1f && second === 0x8b;

/** The name of the file beside a snapshot. */
const besideOf = (name: string) =>
  `${name.replace(/\.gz$/, "").replace(/\.(pickle|pkl|pt)$/, "")}.vramscope.json`;

/** The report of each device of a file. */
async function textOf(client: RankClient, loaded: Loaded, name: string): Promise<string> {
  let out = "";
  for (const [part, { devices, name: inner }] of loaded.parts.entries()) {
    const snapshot = inner === "" ? name : `${name}#${inner}`;
    for (const { device, label } of devices) {
      const title = devices.length === 1 ? snapshot : `${snapshot}, ${label}`;
      const query = { report: { name: title } };
      out += (await client.view({ part, device }, "text", query)) ?? "";
    }
  }
  return out;
}

/** A snapshot as it is, compressed, and the file beside it. */
async function filesOf(
  { from, beside }: Source,
  name: string,
  signal: AbortSignal,
): Promise<Embedded[]> {
  const bytes = await bytesOf(from, signal);
  const packed = isPacked(bytes) ? bytes : await gzip(new Blob([bytes]));
  if (beside === undefined) return [{ name, packed }];
  return [
    { name, packed },
    { name: besideOf(name), packed: await bytesOf(beside, signal) },
  ];
}

/** What a report holds, in the words of the dialog and of the report. */
export function contentsOf(names: readonly string[]): string[] {
  return [
    "the text of the report",
    "the viewer",
    names.length <= 8 ? names.join(" and ") : `${names[0]} and the other files of the run`,
    "paths, names and lines of source as these files have them",
  ];
}

/** Writes the report of all files of the run. */
export async function makeReport(
  { runs }: Uses<"runs">,
  { template, progress, signal }: ReportOptions,
): Promise<Blob> {
  const { modules, pool } = runs;
  const page = await (await fetched(template, signal)).text();
  const viewer = await (await fetched(new URL("inline.js", template), signal)).blob();
  const read = runs.files.filter((file) => file.load.peek().state === "ready");
  const texts: string[] = [];
  const embedded: Embedded[] = [];
  for (const file of read) {
    signal.throwIfAborted();
    const name = read.length === 1 ? fileName(file.path) : file.path;
    progress(name);
    if (file.part !== null) throw new Error(`Only a part of ${name} was read.`);
    if (file.source.bytes > MAX_BYTES) throw new Error(`${name} is too large for a report.`);
    const client = await pool.acquire(file);
    try {
      const load = file.load.peek();
      if (client === null || load.state !== "ready") throw new Error(`${name} was not read.`);
      texts.push(await textOf(client, load.loaded, name));
    } finally {
      pool.release(file);
    }
    embedded.push(...(await filesOf(file.source, name, signal)));
  }
  const [view, worker] = await Promise.all([modules.bytes("view"), modules.bytes("worker")]);
  const title = read.length === 1 ? (embedded[0]?.name ?? "") : (runs.run.peek()?.title ?? "");
  const contents = contentsOf(embedded.map(({ name }) => name));
  const items = contents.map((item) => `<li>${escaped(item)}</li>`).join("");
  const filled: Record<string, BlobPart[]> = {
    title: [escaped(title)],
    version: [VERSION],
    report: texts,
    contents: [`This file holds<ul>${items}</ul>`],
    data: [
      script('id="viewer-script"', await gzip(viewer)),
      script('id="viewer-view"', await gzip(new Blob([view]))),
      script('id="viewer-worker"', await gzip(new Blob([worker]))),
      ...embedded.map(({ name, packed }) => script(`data-file="${escaped(name)}"`, packed)),
    ],
  };
  // The texts of the run may have braces, so the template is divided first.
  const pieces = page.split(/\{\{([a-z-]+)\}\}/);
  const out = pieces.flatMap((piece, place) => (place % 2 === 0 ? [piece] : (filled[piece] ?? [])));
  return new Blob(out, { type: "text/html" });
}
