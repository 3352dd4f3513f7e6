// The page that reads snapshots from addresses: `#url=..&url=..`.

import "./main.js";
import { openAddresses } from "vramscope-viewer";

openAddresses(window.vramscope);
