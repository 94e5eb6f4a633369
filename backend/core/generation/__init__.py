"""Questions made from documents: what is sampled, what is asked, how replies are read, which filters they pass."""
