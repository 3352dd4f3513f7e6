// The service worker: after the first visit, the page works offline. Pages come from the network
// first, so that they are current. Files with a hash in their name come from the cache first. A
// newer worker waits until all pages of the older one are closed, because they may request older
// files.
//
// The scope may be a whole origin with other sites below it, and with snapshots. The worker answers
// and caches the files of the build, and leaves everything else to the browser.
//
// Under `/isolated/` it also adds the headers for cross-origin isolation, which threads need and
// static hosts may not be able to send.

/// <reference lib="webworker" />

// The build defines these (offline.ts beside vite.config.ts): the files that are cached at once,
// those that are cached at their first use, and the hash of both.
declare const FILES: string[];
declare const ON_DEMAND: string[];
declare const VERSION: string;

const worker = self as unknown as ServiceWorkerGlobalScope;
const { scope } = worker.registration;
const PREFIX = `vramscope ${new URL(scope).pathname} `;
const CACHE = PREFIX + VERSION;
const ISOLATED = scope.endsWith("/isolated/");
const addressesOf = (files: string[]) => new Set(files.map((file) => new URL(file, scope).href));
const [AT_ONCE, LATER] = [addressesOf(FILES), addressesOf(ON_DEMAND)];
const HASHED = /\/assets\/[^/]+$/;

const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

function isolated(response: Response): Response {
  if (!ISOLATED || response.type === "opaqueredirect" || response.status === 0) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATION)) headers.set(name, value);
  return new Response(response.body, {
    status: response.status,
    statusText: response.statusText,
    headers,
  });
}

async function cacheFiles(): Promise<void> {
  const cache = await caches.open(CACHE);
  // Bypasses the browser's cache, which may have another version.
  await cache.addAll(FILES.map((file) => new Request(file, { cache: "reload" })));
}

async function deleteOldCaches(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(
    names
      .filter((name) => name.startsWith(PREFIX) && name !== CACHE)
      .map((name) => caches.delete(name)),
  );
  await worker.clients.claim();
}

const cached = (request: Request | string) =>
  caches.match(request, { cacheName: CACHE, ignoreSearch: true });

/** Caches a file at its first use. */
async function keep(request: Request, response: Response): Promise<void> {
  try {
    await (await caches.open(CACHE)).put(request, response);
  } catch {
    // The storage is full: the file is there, but not offline.
  }
}

async function answer(request: Request, address: string): Promise<Response> {
  if (HASHED.test(address)) {
    const hit = await cached(request);
    if (hit) return hit;
  }
  try {
    // Revalidates the browser's cache: a host may have allowed it to keep an old page.
    const response = await fetch(new Request(request, { cache: "no-cache" }));
    // The host may be about to replace its files.
    if (response.status >= 400) return (await cached(request)) ?? response;
    // A page of a newer version must not replace this version's: its files are not in this cache.
    if (response.status === 200 && LATER.has(address)) await keep(request, response.clone());
    return response;
  } catch (error) {
    const hit = await cached(request);
    if (hit) return hit;
    throw error;
  }
}

/** Caches the files again, if another site of this origin has deleted the caches of all sites. */
async function restore(): Promise<void> {
  if ((await cached(scope)) === undefined) await cacheFiles();
}

worker.addEventListener("install", (event) => event.waitUntil(cacheFiles()));
worker.addEventListener("activate", (event) => event.waitUntil(deleteOldCaches()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || request.headers.has("range")) return;
  const { origin, pathname } = new URL(request.url);
  const address = origin + pathname;
  if (AT_ONCE.has(address) || LATER.has(address)) {
    event.respondWith(answer(request, address).then(isolated));
    if (request.mode === "navigate") event.waitUntil(restore());
  } else if (ISOLATED && address.startsWith(scope)) {
    event.respondWith(fetch(request).then(isolated));
  }
});
