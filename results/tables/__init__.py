"""The result tables: their schemas, how they are read and checked, and the figures that follow from them."""
