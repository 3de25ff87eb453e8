"""``python -m asterism.cli`` is the `asterism` command."""

from asterism.cli import main

main()
