"""Record and replay within this interpreter: its HTTP clients are led to a tape, without a proxy and without TLS."""
