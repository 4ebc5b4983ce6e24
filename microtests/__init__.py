"""Microtests: each instruction alone, one definition per behavior, run three ways.

A definition makes a small kernel from the instruction model, the inputs and what it must leave in memory, the latter by
NumPy or plain Python from the manual's words. The same definition is assembled by ptxas for every target that has its
instructions, executed in the emulator, and executed on a GPU when there is one. What a GPU answered is kept in
`recordings/`, and the emulator is held against it where there is none.

    python -m microtests                              in the emulator, against references and recordings
    python -m microtests --device ptxas [FAMILY ...]  every target
    python -m microtests --device gpu --record        on this machine's GPU
    python -m microtests --device gpu --kit blackwell all answers of this GPU in one file, for `ptxgen verify`
"""
