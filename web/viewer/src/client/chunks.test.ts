import { expect, test, vi } from "vitest";
import { type Chunk, chunks, firstBytes, GzipError } from "./chunks.js";
import type { Bytes } from "./messages.js";

const KIB = 1024;

function bytesOf(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 31 + (at >> 8)) & 255;
  // Not the magic number of gzip.
  bytes[0] = 0x80;
  return bytes;
}

const isSame = (a: Uint8Array, b: Uint8Array) =>
  a.length === b.length && a.every((byte, at) => byte === b[at]);

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

async function read(source: Bytes): Promise<{ bytes: Uint8Array; all: Chunk[] }> {
  const all: Chunk[] = [];
  for await (const chunk of chunks(source)) all.push(chunk);
  const whole = new Blob(all.map(({ bytes }) => bytes as Uint8Array<ArrayBuffer>));
  return { bytes: new Uint8Array(await whole.arrayBuffer()), all };
}

test("a blob comes in order, in chunks of at most 256 KiB", async () => {
  const content = bytesOf(1000 * KIB + 17);
  const { bytes, all } = await read(new Blob([content]));
  expect(isSame(bytes, content)).toBe(true);
  expect(Math.max(...all.map((chunk) => chunk.bytes.length))).toBeLessThanOrEqual(256 * KIB);
  expect(all.length).toBeGreaterThan(3);
});

test("the first bytes of a blob and of an address are at most as many as asked for", async () => {
  const content = bytesOf(600 * KIB);
  vi.stubGlobal("fetch", async () => new Response(content));
  for (const source of [new Blob([content]), "http://localhost/rank0.vramscope.json"]) {
    expect(isSame(await firstBytes(source, 500 * KIB), content.subarray(0, 500 * KIB))).toBe(true);
    expect(isSame(await firstBytes(source, 700 * KIB), content)).toBe(true);
  }
  vi.unstubAllGlobals();
});

test("each chunk says how many bytes of the source have been read", async () => {
  const { all } = await read(new Blob([bytesOf(600 * KIB)]));
  let sum = 0;
  for (const chunk of all) {
    sum += chunk.bytes.length;
    expect(chunk.read).toBe(sum);
  }
  expect(sum).toBe(600 * KIB);
});

test("an empty blob has no chunks", async () => {
  expect((await read(new Blob([]))).all).toEqual([]);
});

test("gzip is unpacked, and progress counts packed bytes", async () => {
  const content = bytesOf(2000 * KIB);
  const packed = await gzip(content);
  const { bytes, all } = await read(new Blob([packed]));
  expect(isSame(bytes, content)).toBe(true);
  expect(all.at(-1)?.read).toBe(packed.length);
});

test("gzip that is cut off is an error that says so, after the bytes before it", async () => {
  const packed = await gzip(bytesOf(400 * KIB));
  const cut = new Blob([packed.subarray(0, packed.length - 20)]);
  await expect(read(cut)).rejects.toThrow(GzipError);
  await expect(read(cut)).rejects.toThrow(/cut off or damaged/);
});

test("an address is streamed", async () => {
  const content = bytesOf(300 * KIB);
  vi.stubGlobal("fetch", async () => new Response(content));
  const { bytes } = await read("https://example.org/a.pickle");
  expect(isSame(bytes, content)).toBe(true);
});

test("an address that answers an error status is named with the status", async () => {
  vi.stubGlobal("fetch", async () => new Response("", { status: 404, statusText: "Not Found" }));
  await expect(read("https://example.org/a.pickle")).rejects.toThrow(
    "https://example.org/a.pickle answered 404 Not Found",
  );
});

test.each([
  ["https://other.org/a.pickle", /Access-Control-Allow-Origin: https:\/\/example\.org/],
  ["https://example.org/a.pickle", null],
])("a failed fetch of %s has a hint on CORS only for another origin", async (url, hint) => {
  vi.stubGlobal("location", { origin: "https://example.org" });
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  const failure = await read(url).catch((error: unknown) => error);
  expect(failure).toMatchObject({ hint: hint ? expect.stringMatching(hint) : null });
});

test("an error of the network while gzip is unpacked is not blamed on the file", async () => {
  const packed = await gzip(bytesOf(2000 * KIB));
  let pulled = false;
  const stream = new ReadableStream({
    pull(controller) {
      if (pulled) controller.error(new TypeError("network error"));
      else controller.enqueue(packed.slice(0, 1000));
      pulled = true;
    },
  });
  vi.stubGlobal("fetch", async () => new Response(stream));
  await expect(read("https://example.org/a.pickle.gz")).rejects.toThrow("network error");
});
