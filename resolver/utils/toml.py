"""The parser of TOML: Python's own, and for Python 3.10 the package that it was made from."""

import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["tomllib"]
