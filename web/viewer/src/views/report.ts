// Makes a report in one HTML file, as `vramscope export --as html` does: from the same template,
// and with text that the workers write. What is embedded is read again, so that the text has
// nothing that the embedded snapshots lack.

import { fileName } from "../client/files.js";
import { RankClient } from "../client/rank-client.js";
import type { RankFile } from "../client/rank-file.js";
import type { Modules } from "../client/wasm.js";
import type { CopyPart, DeviceRef, Loaded } from "../generated/protocol.js";
import type { Uses } from "../stores.js";
import { VERSION } from "../version.js";

/** Files of which a copy fits into a text of the browser. */
const MAX_BYTES = 200 << 20;

/** What becomes of the files. */
export interface ReportOptions {
  /** The page around the text, and the viewer's script beside it. */
  template: URL;
  redact: boolean;
  /** Told before each file. */
  progress: (text: string) => void;
  signal: AbortSignal;
}

/** A file of the report. */
interface Embedded {
  name: string;
  /** A snapshot is compressed. */
  packed: Uint8Array;
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

async function gzip(bytes: BlobPart): Promise<Uint8Array> {
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
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

/** The names of files in a report. Without names, only the rank stays. */
function namesOf(files: readonly RankFile[], redact: boolean): string[] {
  const paths = files.map(({ path }) => path);
  if (!redact) return paths.length === 1 ? paths.map(fileName) : paths;
  const ranks = files.map(({ planned }) => planned.rank);
  return ranks.map((rank, place) => {
    if (rank === null) return `file${place}.pickle`;
    const isOnly = ranks.filter((other) => other === rank).length === 1;
    return isOnly ? `rank${rank}.pickle` : `file${place}/rank${rank}.pickle`;
  });
}

/** The name of a snapshot that is written anew, and that of the file beside it. */
function embeddedNames(name: string, part: string): [string, string] {
  const plain = (part === "" ? name : `${name}#${part}`).replace(/\.gz$/, "");
  const stem = plain.replace(/\.(pickle|pkl|pt)$/, "");
  const ending = stem === plain ? ".pickle" : plain.slice(stem.length);
  return [`${stem}${ending}.gz`, `${stem}.vramscope.json`];
}

/** Reads what is embedded, and asks for the report of each of its devices. */
async function textOf(
  modules: Modules,
  name: string,
  snapshot: Blob,
  beside: Blob | null,
): Promise<string> {
  const worker = modules.spawn();
  try {
    let client: RankClient | null = null;
    const loaded = await new Promise<Loaded>((resolve, reject) => {
      const failed = ({ message }: { message: string }) => reject(new Error(message));
      const source = { path: name, bytes: snapshot.size, from: snapshot };
      client = new RankClient(
        worker,
        beside === null ? source : { ...source, beside },
        { memory: null, events: null },
        { progress: () => undefined, loaded: resolve, failed, crashed: failed, refused: failed },
      );
    });
    let out = "";
    for (const { device } of loaded.parts[0]?.devices ?? []) {
      const several = (loaded.parts[0]?.devices.length ?? 0) > 1;
      const title = several ? `${name}, device ${device}` : name;
      out +=
        (await (client as RankClient | null)?.view({ part: 0, device }, "text", {
          report: { name: title },
        })) ?? "";
    }
    return out;
  } finally {
    worker.end();
  }
}

/** Copies the snapshots of one file, and writes their report. */
async function partOf(
  modules: Modules,
  client: RankClient,
  loaded: Loaded,
  name: string,
  salt: string | null,
): Promise<{ text: string; files: Embedded[] }> {
  const files: Embedded[] = [];
  let text = "";
  for (const [part, { defaultDevice, devices, name: inner }] of loaded.parts.entries()) {
    if (devices.length === 0) continue;
    const target: DeviceRef = { part, device: defaultDevice };
    const copy = async (part: CopyPart) =>
      (await client.view(target, "text", { copy: { part, salt } })) ?? "";
    const loss = await copy("loss");
    if (loss !== "") throw new Error(`${name} cannot be copied: ${loss}.`);
    const pickle = await copy("snapshot");
    const bytes = new Uint8Array(pickle.length);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = pickle.charCodeAt(at);
    const sidecar = await copy("sidecar");
    const number = part === 0 ? "" : String(part);
    const [snapshotName, besideName] = embeddedNames(name, salt === null ? inner : number);
    const beside = sidecar === "" ? null : new Blob([sidecar]);
    text += await textOf(modules, snapshotName, new Blob([bytes]), beside);
    files.push({ name: snapshotName, packed: await gzip(bytes) });
    if (sidecar !== "") files.push({ name: besideName, packed: new TextEncoder().encode(sidecar) });
  }
  return { text, files };
}

/** What a report holds, in the words of the dialog and of the report. */
export function contentsOf(names: readonly string[], redact: boolean): string[] {
  return [
    "the text of the report",
    "the viewer",
    names.length <= 8 ? names.join(" and ") : `${names[0]} and the other files of the run`,
    "no line of source",
    redact ? "hashes in place of paths and names" : "paths and names as recorded",
  ];
}

/** Writes the report of all files of the run. */
export async function makeReport(
  { runs }: Uses<"runs">,
  { template, redact, progress, signal }: ReportOptions,
): Promise<Blob> {
  const { modules, pool, files } = runs;
  const page = await (await fetched(template, signal)).text();
  const viewer = await (await fetched(new URL("inline.js", template), signal)).text();
  const salt = redact ? `${crypto.randomUUID()}${crypto.randomUUID()}` : null;
  const read = files.filter((file) => file.load.peek().state === "ready");
  const names = namesOf(read, redact);
  const texts: string[] = [];
  const embedded: Embedded[] = [];
  for (const [place, file] of read.entries()) {
    signal.throwIfAborted();
    progress(fileName(file.path));
    if (file.source.bytes > MAX_BYTES) throw new Error(`${file.path} is too large for a report.`);
    const client = await pool.acquire(file);
    try {
      const load = file.load.peek();
      if (client === null || load.state !== "ready") throw new Error(`${file.path} was not read.`);
      const part = await partOf(modules, client, load.loaded, names[place] ?? "", salt);
      texts.push(part.text);
      embedded.push(...part.files);
    } finally {
      pool.release(file);
    }
  }
  const [view, worker] = await Promise.all([modules.bytes("view"), modules.bytes("worker")]);
  const title = embedded.length === 1 ? (embedded[0]?.name ?? "") : (runs.run.peek()?.title ?? "");
  const contents = contentsOf(
    embedded.map(({ name }) => name),
    redact,
  );
  const filled: Record<string, () => Promise<BlobPart[]> | BlobPart[]> = {
    title: () => [escaped(redact ? "GPU memory" : title)],
    version: () => [VERSION],
    report: () => texts,
    contents: () => [
      `This file holds<ul>${contents.map((item) => `<li>${escaped(item)}</li>`).join("")}</ul>`,
    ],
    data: async () => [
      script('id="viewer-script"', await gzip(viewer)),
      script('id="viewer-view"', await gzip(view)),
      script('id="viewer-worker"', await gzip(worker)),
      ...embedded.map(({ name, packed }) => script(`data-file="${escaped(name)}"`, packed)),
    ],
  };
  // The texts of the run may have braces, so the template is divided first.
  const pieces = page.split(/\{\{([a-z-]+)\}\}/);
  const out = await Promise.all(
    pieces.map((piece, place) => (place % 2 === 0 ? [piece] : (filled[piece]?.() ?? []))),
  );
  return new Blob(out.flat(), { type: "text/html" });
}
