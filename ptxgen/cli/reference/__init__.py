"""Commands that look things up: explain, layout, coverage, verify."""
