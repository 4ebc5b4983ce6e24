"""Which kernel and options a problem should run with: measured, forecast or modeled, and launched from a cache."""
