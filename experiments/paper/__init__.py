"""What the paper reports, measured again."""
