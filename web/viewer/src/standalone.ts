// The entry of `standalone.js`: the package with its dependencies in one script, for pages without
// a bundler.

import "./define.js";

export * from "./index.js";
