"""Parse HTML for its links, its title and the metadata of its head."""
