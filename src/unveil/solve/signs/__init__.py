"""Signs of a pixel by exact search: values, and the values that the equations leave open."""
