"""Rules of a PTX module around its instructions (PTX ISA 5, 7, 11): one file for each kind of declaration.

`header` reads what the text is for, `variables` and `parameters` judge what is declared, `functions` the directives of
entries and functions, `linking` what is declared more than once, `debugging` sections and source places. All give
problems, `ptxgen.instr.model.check` their places.
"""
