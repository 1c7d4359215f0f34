"""Recordings of other tools, read into exchanges and turned into records of a tape. Values in, values out."""
