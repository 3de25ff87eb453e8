"""What is on disk: `engine` (RocksDB is imported there alone), `keys`, `block_store` (blocks as
loaded), `live_ids` (which ids live), `tables` (B1, B2, B3), `image` (flat mapped arrays that draws
read), `column_index`, `image_writer`.

The network does not belong here."""
