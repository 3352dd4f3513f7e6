// A large blob is read by a worker of its own. What a browser reads of one it hands over on the thread that has asked: a
// thread that parses would not read meanwhile, whatever it has asked for.

import { blobChunks } from "./chunks.js";
import type { FromWorker, ToWorker } from "./messages.js";

/** The blob's bytes, in order; two pieces are on their way while one is parsed. */
export async function* readAhead(blob: Blob): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  // The script that this is in.
  const reader = new Worker(location.href, { type: "module", name: "memstrata reader" });
  const send = (message: ToWorker) => reader.postMessage(message);
  const come: (FromWorker | null)[] = [];
  let wake = () => {};
  const take = (message: FromWorker | null) => {
    come.push(message);
    wake();
  };
  reader.onmessage = ({ data }: MessageEvent<FromWorker>) => take(data);
  reader.onerror = () => take(null);
  try {
    send({ kind: "read", source: blob });
    for (let read = 0; ; ) {
      while (come.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const message = come.shift();
      if (message?.kind === "bytes") {
        if (message.bytes === null) return;
        send({ kind: "more" });
        read += message.bytes.length;
        yield message.bytes;
      } else if (message) {
        throw message.kind === "crashed" ? message.failure : message.response;
      } else {
        // It cannot be started here, or has been stopped: what is left is read without it.
        yield* blobChunks(blob.slice(read));
        return;
      }
    }
  } finally {
    reader.terminate();
  }
}
