"""The `asterism` command."""
