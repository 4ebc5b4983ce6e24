"""`ptxgen run`: a kernel on the emulator or a GPU, and its report."""
