"""The targets that have tensor memory."""

#: Tensor memory itself, and most that works on it.
FAMILY = "sm_100f sm_110f"
#: What is not portable within a family (measured, ptxas 13.5).
SINGLE = "sm_100a sm_103a sm_107a sm_110a"
