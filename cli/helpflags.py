"""How every command asks for help: `-h` and `--help`, whether it is run alone or through the group."""

HELP: dict[str, list[str]] = {"help_option_names": ["-h", "--help"]}
