"""Checks: each observes the events of a launch and reports findings."""
