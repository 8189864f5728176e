"""Which vectors does an encoding mix? Subsets and pixels improve each other."""
