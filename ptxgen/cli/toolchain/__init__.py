"""Commands around NVIDIA's tools: assemble and check, SASS, Nsight Compute."""
