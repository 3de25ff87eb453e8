"""Background work on the data folder: scrubbing, repair and removal of what nothing refers to."""
