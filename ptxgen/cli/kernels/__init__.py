"""Commands about our kernels: list, build, plan, sweep, tune."""
