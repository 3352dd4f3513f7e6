"""``python -m vramscope``: the program ``vramscope``, with its arguments."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # Not by way of the program: each function would be a frame above those of the recorded one.
    if sys.argv[1:2] == ["record"]:
        from .recorder import command

        command.main(sys.argv[2:])
    elif sys.argv[1:2] == ["dry-run"]:
        from .dry import command as dry_run

        dry_run.main(sys.argv[2:])
    elif sys.argv[1:2] == ["fix"]:
        from .fix import command as fix

        fix.main(sys.argv[2:])
    else:
        from .program import main

        main()
