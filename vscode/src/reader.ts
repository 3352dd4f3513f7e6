// A worker of the viewer in a thread of Node: the browser's worker script, with what it uses of a
// browser. It reads files of this machine in chunks.

import { constants, createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { parentPort, type TransferListItem, workerData } from "node:worker_threads";
import type { FromWorker, ToWorker } from "./channel.js";
import "../../web/viewer/dist/client/worker.js";

/** Bytes that are read at once. */
const PIECE = 1 << 20;
/** A pipe that has taken the place of a file is not waited for. Windows has no such flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const { module } = workerData as { module: WebAssembly.Module };
const port = parentPort;

/** A file as a response. The viewer's worker takes this error for a file that has moved. */
function open(url: string): Response {
  const options = { highWaterMark: PIECE, flags: FLAGS as unknown as string };
  const file = createReadStream(fileURLToPath(url), options);
  const pieces = async function* () {
    try {
      yield* file;
    } catch (error) {
      throw new DOMException(String(error), "NotReadableError");
    }
  };
  return new Response(Readable.toWeb(Readable.from(pieces())) as ReadableStream<Uint8Array>);
}

if (port) {
  Object.assign(globalThis, {
    fetch: async (url: string) => open(url),
    postMessage: (message: FromWorker, { transfer }: { transfer: Transferable[] }) =>
      port.postMessage(message, transfer as TransferListItem[]),
  });
  port.on("message", (message: ToWorker) => {
    const data = message.kind === "prepare" ? { ...message, module } : message;
    const { onmessage } = globalThis as {
      onmessage?: ((event: { data: ToWorker }) => void) | null;
    };
    onmessage?.({ data });
  });
}
