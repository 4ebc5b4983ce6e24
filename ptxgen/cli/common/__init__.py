"""What the commands share: options, input files, help pages, the console."""
