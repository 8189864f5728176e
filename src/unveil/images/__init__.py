"""Private images out of encodings made by the released code: members, weights and signs under an
image prior."""
