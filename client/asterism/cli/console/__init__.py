"""The `asterism console` command: statements at a prompt or from scripts.
Parsing of statements belongs to graphd; prompt_toolkit is imported by `prompt` only."""
