"""Checks of what the lanes and warps of one instruction do together: stores, copies, shuffles, setmaxnreg."""
