//! A shared log in memory. It follows in the next commit.
