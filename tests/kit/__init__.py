"""Parts that tests share: clusters, reference answers, small graphs, assertions.
Tests do not belong here."""
