"""Sockets, processes, files and their lifetimes."""
