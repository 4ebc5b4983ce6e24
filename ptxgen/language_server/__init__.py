"""`ptxgen language-server`: diagnostics, hover and completion of .ptx files in any editor that speaks LSP.

`document` reads the text, whatever the protocol; `completion` finds what can follow; `server` speaks LSP through pygls.
"""
