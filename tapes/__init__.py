"""What a tape is: bytes and values in, values out. No file, socket, clock or randomness."""
