/**
 * That of package.json. A worker's script and wasm that were copied by hand may be older than the
 * page.
 */
export const VERSION = "0.1.0";
