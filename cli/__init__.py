"""Parse the command line, print what the rest found out."""
