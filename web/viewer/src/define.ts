// Importing this registers <vramscope-viewer>.

import { register } from "./tag.js";

export { TAG } from "./tag.js";

register();
