"""mitmproxy addons, one class a file."""
