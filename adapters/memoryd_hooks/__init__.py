"""Hook dialects of coding agents: from payload to events, from decision to the bytes that the host expects."""
