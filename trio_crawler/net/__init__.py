"""The network: one URL asked once, over connections that are kept while they can be trusted."""
