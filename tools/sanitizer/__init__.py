"""What compute-sanitizer, and a GPU alone, show of the bugs in tests/bugs and of their right twins."""
