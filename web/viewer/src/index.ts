// The package: the element's class, what its methods take and give, and what a page that embeds it
// may want. Importing this registers nothing: `vramscope-viewer/element` registers the tag, and so
// does the first `openViewer()`.

export type { LoadInput } from "./client/files.js";
export { type Stats, type VramscopeEvents, VramscopeViewer } from "./element.js";
export type { AxisKind, BlockDetail, Failure, Hit, Quantity } from "./generated/protocol.js";
export { openAddresses } from "./host/addresses.js";
export { type FromViewer, listen, type ToViewer } from "./host/listen.js";
export { openViewer, type ViewerOptions } from "./host/open-viewer.js";
export { bindAddress } from "./host/url-state.js";
export type { View } from "./linked.js";
export { register, TAG } from "./tag.js";
export type { Theme, ViewState } from "./view-state.js";
