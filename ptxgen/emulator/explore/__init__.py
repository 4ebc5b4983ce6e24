"""Systematic exploration of the orders of a launch: one warp at a time is held at each point where order matters."""

from ptxgen.emulator.explore.exploration import Exploration, Order, explore

__all__ = ["Exploration", "Order", "explore"]
