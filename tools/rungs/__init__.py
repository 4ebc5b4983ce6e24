"""Every rung of the ladders at all shapes, types, majors and schedules: what the tests take a sample of.

`python -m tools.rungs [NAME...]` prints a line for every rung, and what is wrong.
"""
