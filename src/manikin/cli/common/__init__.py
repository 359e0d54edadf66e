"""What subcommands share: options, their help, the terminal; the checks of `doctor`."""
