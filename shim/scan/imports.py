"""Which modules a program imports, wherever in it. Names only: where they lie is the reader's affair."""

import ast
import warnings


def imports(source: bytes) -> list[str]:
    """Dotted names, each once; `from a import b` gives `a` and `a.b`, and dots in front mean relative.

    Empty for what can't be parsed: the scan says that.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            parent = module if module.endswith(".") else f"{module}."
            names += [module, *(parent + alias.name for alias in node.names if alias.name != "*")]
    return list(dict.fromkeys(names))
