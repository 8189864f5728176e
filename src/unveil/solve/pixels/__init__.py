"""Every pixel from known subsets: exact or under noise, and what that says against chance."""
