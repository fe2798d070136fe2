"""The pages: one function each, which draws what its `Page` may see."""
