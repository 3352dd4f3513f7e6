// Importing this registers <memstrata-viewer>.

import { register } from "./tag.js";

export { TAG } from "./tag.js";

register();
