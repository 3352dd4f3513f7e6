// Static HTTP servers for folders, with optional pages from strings.

import { cpSync, createReadStream, mkdtempSync, rmSync } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { expect, type Page } from "@playwright/test";
import { testData } from "./data.js";
import { site } from "./examples.js";

const TYPES: Record<string, string> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/** A host name that the browser maps to 127.0.0.1, see playwright.config.ts. */
export const STRANGER = "host.example";

export interface Folder {
  /** The address of a path, with another name of this machine than 127.0.0.1 if given. */
  at(path: string, host?: string): string;
  /** The requested paths. */
  readonly asked: readonly string[];
  stop(): Promise<void>;
}

interface Options {
  headers?: Record<string, string>;
  /** Pages by path. */
  pages?: Record<string, string>;
  /** The status of every answer, for a host that is broken; null for files. */
  status?: () => number | null;
}

const listening = (server: Server) =>
  new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });

/** Serves a folder, or none, and test_data/ under /data/. */
export async function serveFolder(
  root: string | null,
  { headers = {}, pages = {}, status = () => null }: Options = {},
): Promise<Folder> {
  const fileOf = (pathname: string) => {
    const path = normalize(pathname.endsWith("/") ? `${pathname}index.html` : pathname);
    if (path.startsWith("/data/")) return testData(path.slice("/data/".length));
    return root === null ? null : join(root, path);
  };
  const paths: string[] = [];
  const server = createServer(async (request, response) => {
    const asked = new URL(request.url ?? "/", "http://localhost").pathname;
    paths.push(asked);
    const broken = status();
    if (broken !== null) {
      response.writeHead(broken, headers).end("broken");
      return;
    }
    const pathname = /%(?![0-9a-f]{2})/i.test(asked) ? "/" : decodeURIComponent(asked);
    const page = pages[pathname];
    if (page !== undefined) {
      response.writeHead(200, { ...headers, "Content-Type": TYPES[".html"] }).end(page);
      return;
    }
    const file = fileOf(pathname);
    const found = file === null ? null : await stat(file).catch(() => null);
    // As static hosts do, so that addresses in the page are relative to the folder.
    if (found?.isDirectory()) {
      response.writeHead(301, { ...headers, Location: `${asked}/` }).end();
      return;
    }
    if (file === null || !found?.isFile()) {
      response.writeHead(404, headers).end("not here");
      return;
    }
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { ...headers, "Content-Type": type, "Content-Length": found.size });
    // A read may fail when the folder is deleted at the end of a test.
    createReadStream(file)
      .on("error", () => response.destroy())
      .pipe(response);
  });
  const port = await listening(server);
  return {
    asked: paths,
    at: (path, host = "127.0.0.1") => `http://${host}:${port}${path}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export interface Hosted extends Pick<Folder, "asked" | "stop"> {
  /** The status of every answer from now on; null, as at first, for files. */
  status: number | null;
  /** Ends in a slash. */
  address: string;
  /** A copy of the site that belongs to the test. */
  folder: string;
}

/**
 * Serves a copy of the site below a path as GitHub Pages does: without isolation headers, cacheable
 * for 10 minutes. Other hosts can send headers of their own.
 */
export async function host(
  path = "",
  headers: Record<string, string> = { "Cache-Control": "max-age=600" },
): Promise<Hosted> {
  const root = mkdtempSync(join(tmpdir(), "hosted-"));
  const folder = join(root, path);
  cpSync(site, folder, { recursive: true });
  const served = await serveFolder(root, { headers, status: () => hosted.status });
  const hosted: Hosted = {
    status: null,
    address: served.at(path === "" ? "/" : `/${path}/`),
    folder,
    asked: served.asked,
    stop: async () => {
      await served.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
  return hosted;
}

/** Waits until the service worker is active and controls the page. */
export async function kept(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { active } = await navigator.serviceWorker.ready;
    await new Promise<void>((resolve) => {
      if (active?.state === "activated") resolve();
      active?.addEventListener("statechange", () => active.state === "activated" && resolve());
    });
  });
  await expect
    .poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null))
    .toBe(true);
}
