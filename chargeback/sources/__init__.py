"""What clouds and vendors bill: one module a provider, all of them yield FOCUS-named charges."""
