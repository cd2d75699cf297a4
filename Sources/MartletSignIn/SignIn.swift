/// The endpoints that Martlet answers itself: logins, sessions, links and what belongs to them.
