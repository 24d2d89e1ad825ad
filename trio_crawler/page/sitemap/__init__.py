"""Parse sitemaps for the URLs that they list (sitemaps.org)."""
