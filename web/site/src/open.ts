// The page that reads snapshots from addresses: `#url=..&url=..`.

import "./main.js";
import { openAddresses } from "memstrata-viewer";

openAddresses(window.memstrata);
