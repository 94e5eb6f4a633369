"""What each kind of slice does. A handler gets a lease and returns or raises; backend.services.work does the rest."""
