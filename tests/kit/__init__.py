"""What tests share: clusters, reference answers, small graphs. Each module says what it gives."""
