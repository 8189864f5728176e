"""May a vector be called verified? Every doubt about a recovery, and the theorem that rules other
readings out."""
