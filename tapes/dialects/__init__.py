"""The wire formats of LLM providers, one module each: JSON in, a conversation out."""
