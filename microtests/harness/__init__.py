"""What definitions are made with (`draft`, `lanes`, `numbers`, `inputs`), and how they run (`run`, `gpu`, ...)."""
