"""The attacks that the paper names, one file each: `absolute`, `cliques`, `line_graph`, `tensor`,
`phase_retrieval`."""
