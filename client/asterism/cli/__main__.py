"""Entry point of ``python -m asterism.cli``, the `asterism` command."""

from asterism.cli import main

main()
