"""What happened to devices: the tables of fault codes, and each occurrence once, whoever reported it."""
