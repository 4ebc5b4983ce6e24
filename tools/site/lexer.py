"""Colors of PTX in the site's blocks."""

from __future__ import annotations

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class PtxLexer(RegexLexer):
    """Directives, opcodes, registers, numbers, labels and comments."""

    name = "PTX"
    aliases = ("ptx",)
    tokens = {  # noqa: RUF012  (as Pygments declares them)
        "root": [
            (r"\s+", Text),
            (r"//.*$", Comment.Single),
            (r"/\*[\s\S]*?\*/", Comment.Multiline),
            (r'"[^"\n]*"', String),
            (r"@!?%?[\w$]+", Name.Decorator),
            (r"^\s*[\w$%]+:(?!:)", Name.Label),
            (r"\.[A-Za-z_][\w:.]*", Keyword.Type),
            (r"%[\w$.]+", Name.Variable),
            (r"0[xX][0-9a-fA-F]+U?|0[fFdD][0-9a-fA-F]{8,16}|\d+(\.\d+)?U?", Number),
            (r"[a-z][a-z0-9_]*(\.[\w:]+)+", Name.Function),
            (r"[A-Za-z_$][\w$]*", Name),
            (r"[{}()\[\];,]", Punctuation),
            (r"[-+*/<>=!&|^~?:.|@]", Operator),
            (r".", Text),
        ]
    }
