"""Routes: declared with their paths on functions, and answered without a web framework.

A request is matched by its path (``paths``), its parts become the arguments of a function (``arguments``, ``json_body``), and what the
function returns is the answer (``responses``); ``endpoints`` does all that. A program in the same process asks it directly (``in_process``),
a server through ``asgi``.
"""
