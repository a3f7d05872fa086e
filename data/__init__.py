"""The compatibility matrix and the texts for people: TOML beside its schemas, no code."""
