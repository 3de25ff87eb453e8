"""What is on disk: `engine` (RocksDB's one door here), `keys`, `graph` (blocks as loaded), `tables` (B1, B2, B3),
`image` (flat mapped arrays that draws read). Knows no network."""
