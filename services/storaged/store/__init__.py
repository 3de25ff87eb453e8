"""What is on disk: `engine` (RocksDB's one door here), `keys`, `graph` (blocks as loaded),
`members` (which ids live), `tables` (B1, B2, B3), `image` (flat mapped arrays that draws read),
`image_writer`. Knows no network."""
