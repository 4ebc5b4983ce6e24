"""Asynchronous work: the timeline of its completion, and what copies and asynchronous stores do."""
