"""One module per command: options in, one call, results out."""
