// The package's exports: the element's class, the types of its methods, and helpers for embedding
// pages. Importing this registers nothing. `vramscope-viewer/element` and the first `openViewer()`
// register the tag.

export type { LoadInput } from "./client/files.js";
export type { Bytes, Parts } from "./client/wasm.js";
export { type Stats, VramscopeViewer } from "./element.js";
export type {
  AxisKind,
  BlockDetail,
  Failure,
  Hit,
  ProgramRecord,
  Quantity,
} from "./generated/protocol.js";
export { openAddresses } from "./host/addresses.js";
export type { VramscopeEvents } from "./host/events.js";
export { type FromViewer, listen, type ToViewer } from "./host/listen.js";
export { openViewer, type ViewerOptions } from "./host/open-viewer.js";
export { bindAddress } from "./host/url-state.js";
export type { View } from "./places/index.js";
export { register, TAG } from "./tag.js";
export type { Theme, ViewState } from "./view-state.js";
