"""The command ``asterism sample`` and its subcommands."""
