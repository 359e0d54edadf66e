"""What `manikin eval` and `manikin report` do: one policy, several policies, action errors on demonstrations."""
