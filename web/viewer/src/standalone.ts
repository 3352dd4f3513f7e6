// What `standalone.js` is made of: the whole package in one script with what it depends on, for
// pages without a bundler.

import "./define.js";

export * from "./index.js";
