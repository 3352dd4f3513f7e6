// A source as a stream of chunks, where the next read is under way while the current chunk is parsed.

import type { Bytes } from "./messages.js";

const CHUNK = 1 << 20;

async function* blobChunks(blob: Blob): AsyncGenerator<Uint8Array> {
  const read = (from: number) => blob.slice(from, from + CHUNK).arrayBuffer();
  let next = read(0);
  for (let offset = 0; offset < blob.size; offset += CHUNK) {
    const current = await next;
    next = read(offset + CHUNK);
    // The read that runs ahead may fail after its reader has gone; who still reads gets the error from its own await.
    next.catch(() => undefined);
    yield new Uint8Array(current);
  }
}

async function* urlChunks(url: string): AsyncGenerator<Uint8Array> {
  const response = await fetch(url);
  if (!response.ok || response.body === null) {
    throw new Error(`${url} answered ${response.status} ${response.statusText}`);
  }
  const reader = response.body.getReader();
  let next = reader.read();
  for (;;) {
    const { done, value } = await next;
    if (done) return;
    next = reader.read();
    next.catch(() => undefined);
    yield value;
  }
}

/** The bytes of `source`, in order. */
export function chunks(source: Bytes): AsyncGenerator<Uint8Array> {
  return typeof source === "string" ? urlChunks(source) : blobChunks(source);
}
