// Saves tables and pictures as files, and copies tables to the clipboard.

import { fileName } from "../client/files.js";
import type { ExportFormat, Table, TextForm } from "../generated/protocol.js";
import { copyText } from "../host/clipboard.js";
import { CLIPBOARD_DENIED, type Selection } from "../selection.js";
import type { Uses } from "../stores.js";

const TYPES: Record<string, string> = {
  csv: "text/csv",
  json: "application/json",
  svg: "image/svg+xml",
};

/** Downloads a file. */
export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Once begun, the download does not need the address.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A file name without extension, such as `rank3_memory_snapshot-blocks`. */
export function nameFor(selection: Selection, what: string): string {
  const path = selection.focus.peek()?.file.path ?? "vramscope";
  return `${fileName(path).replace(/\.(pickle|pkl|pt|json|html)?(\.gz)?$/, "")}-${what}`;
}

async function tableText(
  { target }: Selection,
  what: Table,
  form: TextForm,
): Promise<string | null> {
  return (await target?.client.view(target.target, "text", { export: { what, form } })) ?? null;
}

export async function saveTable(
  selection: Selection,
  what: Table,
  form: TextForm,
  name: string,
): Promise<void> {
  const text = await tableText(selection, what, form);
  if (text !== null)
    saveBlob(new Blob([text], { type: TYPES[form] ?? "" }), `${nameFor(selection, name)}.${form}`);
}

/** Saves the focused device in the format of another tool. */
export async function saveConverted(
  selection: Selection,
  format: ExportFormat,
  suffix: string,
): Promise<void> {
  const { target } = selection;
  const text = (await target?.client.view(target.target, "text", { convert: { format } })) ?? null;
  if (text === null) return;
  saveBlob(new Blob([text], { type: "text/plain" }), `${nameFor(selection, suffix)}`);
}

export async function copyTable(
  { selection, status }: Uses<"selection" | "status">,
  what: Table,
): Promise<void> {
  const text = await tableText(selection, what, "csv");
  const done = text !== null && (await copyText(text));
  status.announce(done ? "Copied" : CLIPBOARD_DENIED);
}
