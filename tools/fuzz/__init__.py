"""Random texts, most of them nearly PTX: reading and checking them may raise PtxSyntaxError and nothing else, and ends.

    python -m tools.fuzz [--count N] [--seed S] [--jobs J] [--record]

Every text follows from the seed and its number, so a failure can be made again: `python -m tools.fuzz --seed S
--only N` prints it. What failed is also written to build/fuzz.
"""
