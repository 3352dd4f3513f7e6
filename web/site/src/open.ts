// The page that reads snapshots from other addresses: `#url=..&url=..`.

import "./main.js";
import { openAddresses } from "vramscope-viewer";

openAddresses(window.vramscope);
