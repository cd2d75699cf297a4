/// Sign-in with a password.
