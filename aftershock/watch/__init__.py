"""What people do with live and dead runs: look at one, abort it, clean up what dead ones left."""
