"""From PTX text to a program: names, variables, basic blocks, calls, and the operands of each instruction."""
