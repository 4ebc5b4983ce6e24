"""What several test modules share: kernels, references, paths."""
