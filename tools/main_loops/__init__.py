"""The main loops of the warps that load and multiply, in SASS, next to those of CUTLASS and DeepGEMM.

python -m tools.main_loops --cutlass CHECKOUT --deepgemm CHECKOUT --nvcc PROGRAM --record
"""
