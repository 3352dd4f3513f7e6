// The package: the element's class, what its methods take and give, and the binding of a page's address to its state.
// `memstrata-viewer/element` registers the tag.

export type { LoadInput } from "./client/files.js";
export { type MemstrataEvents, MemstrataViewer, type Stats } from "./element.js";
export type { AxisKind, BlockDetail, Failure, Hit, Quantity } from "./generated/protocol.js";
export { bindAddress } from "./host/url-state.js";
export type { Theme, ViewState } from "./view-state.js";
