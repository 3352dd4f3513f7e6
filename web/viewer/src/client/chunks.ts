// A source as a stream of chunks. The next chunk is read while the current one is parsed. The
// browser unpacks gzip.

import type { Failure } from "../generated/protocol.js";
import type { Bytes } from "./messages.js";

/**
 * Maximum bytes per chunk. Each chunk is copied to wasm memory, which never shrinks. A small chunk
 * also stays in the CPU cache.
 */
const CHUNK_BYTES = 1 << 18;

/** The browser does not say why a fetch failed. For another origin, CORS is the usual reason. */
function unreachable(url: string): Failure {
  const { origin } = location;
  const foreign = URL.canParse(url) && new URL(url).origin !== origin;
  return {
    id: null,
    message: `${url} could not be fetched.`,
    hint: foreign
      ? "The server cannot be reached, or it does not allow this page to read the file (CORS). " +
        `It must send the header Access-Control-Allow-Origin: ${origin}. ` +
        "Or download the file and open it here, or run `vramscope serve` next to it."
      : null,
  };
}

async function download(url: string): Promise<ReadableStream<Uint8Array>> {
  const response = await fetch(url).catch((): never => {
    throw unreachable(url);
  });
  if (!response.ok || response.body === null) {
    throw new Error(`${url} answered ${response.status} ${response.statusText}`);
  }
  return response.body;
}

/** The chunks of the browser's own stream, which is faster than slices of a file. */
async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let next = reader.read();
  for (;;) {
    const { done, value } = await next;
    if (done) return;
    next = reader.read();
    // The read ahead may fail after the consumer has stopped. An active consumer gets the error
    // from its own await.
    next.catch(() => undefined);
    yield value;
  }
}

async function* blobPieces(blob: Blob): AsyncGenerator<Uint8Array> {
  try {
    yield* piecesOf(blob.stream());
  } catch (error) {
    // A stream reports every failure as a network error. Reading a slice throws the real one.
    await blob.slice(0, 1).arrayBuffer();
    throw error;
  }
}

/** The first bytes of a source, at most `limit`. */
export async function firstBytes(source: Bytes, limit: number): Promise<Uint8Array> {
  if (typeof source !== "string") return new Uint8Array(await source.slice(0, limit).arrayBuffer());
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const piece of piecesOf(await download(source))) {
    pieces.push(new Uint8Array(piece));
    length += piece.length;
    if (length >= limit) break;
  }
  return firstBytes(new Blob(pieces), limit);
}

export interface Chunk {
  bytes: Uint8Array;
  /** Bytes of the source read so far. */
  read: number;
}

/** The browser could not unpack gzip data. */
export class GzipError extends Error {
  constructor(read: number, reason: unknown) {
    const words = reason instanceof Error ? reason.message : String(reason);
    super(
      `the gzip data cannot be unpacked after ${read} bytes of the file. ` +
        `It is cut off or damaged, or has several members (${words})`,
    );
  }
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/** The bytes of `source`, in order. */
export async function* chunks(source: Bytes): AsyncGenerator<Chunk> {
  const raw = typeof source === "string" ? piecesOf(await download(source)) : blobPieces(source);
  let read = 0;
  let packed = false;
  const counted = async () => {
    const next = await raw.next();
    if (!next.done) read += next.value.byteLength;
    return next;
  };
  const first = await counted();
  if (!first.done) packed = isGzip(first.value);
  if (!packed) {
    for (let next = first; !next.done; next = await counted()) {
      const { length } = next.value;
      for (let at = 0; at < length; at += CHUNK_BYTES) {
        const bytes = next.value.subarray(at, at + CHUNK_BYTES);
        yield { bytes, read: read - length + at + bytes.length };
      }
    }
    return;
  }
  let ahead: typeof first | null = first;
  let broken: unknown = null;
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const next =
        ahead ??
        (await counted().catch((error: unknown) => {
          broken = error;
          throw error;
        }));
      ahead = null;
      if (next.done) controller.close();
      else controller.enqueue(next.value as Uint8Array<ArrayBuffer>);
    },
  });
  const reader = stream.pipeThrough(new DecompressionStream("gzip")).getReader();
  for (;;) {
    const next = await reader.read().catch((error: unknown) => {
      // The source failed or, more likely, its data is damaged.
      throw broken ?? new GzipError(read, error);
    });
    if (next.done) return;
    yield { bytes: next.value, read };
  }
}
