"""Address maps of tensor-core operands, TMA tiles and tensor memory: index in, address out, nothing else.

The modules: `swizzle` (the XOR), `operands` (canonical matrix layouts in shared memory), `tma` (box to shared
memory), `tmem` (tensor memory: load/store cells and accumulators), `fragments` (matrices in the registers of a warp
or warpgroup).
`banks` counts the bank conflicts of an access; `pictures` draws all of them.
"""
