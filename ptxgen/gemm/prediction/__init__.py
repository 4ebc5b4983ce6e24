"""How long a planned GEMM takes: traffic, the planner's model, the machine model, and what a changed option brings."""
