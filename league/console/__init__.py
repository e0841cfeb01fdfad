"""Things that all commands share: flags, tables and words on a terminal."""
