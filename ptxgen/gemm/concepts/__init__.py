"""What a tensor-core plan is made of, one concept a module; a block of kernels/blocks spells each in PTX."""
