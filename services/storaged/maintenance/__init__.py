"""Work on the data folder: scrubbing, repair, inventory, and removal at metad's request."""
