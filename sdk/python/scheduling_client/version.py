"""The service's version that the package was made for.

Made by scripts/write_python_client.py: don't change it by hand."""

VERSION = "1.0.0"
