"""What every daemon needs: calls with deadlines, gRPC, TCP and HTTP servers and clients,
heartbeats, settings, logs, metrics.

What one daemon alone does belongs to its own package; nothing here knows a graph."""
