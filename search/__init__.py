"""search: one answer from a keyword index and a vector index, with the reasons for its order."""
