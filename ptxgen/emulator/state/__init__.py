"""The state of a launch: warps and their lanes, barriers, clusters, stacks, register pools."""
