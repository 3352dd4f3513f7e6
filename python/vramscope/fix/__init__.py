"""``vramscope fix``: a change of a program's source that was run without a GPU."""
