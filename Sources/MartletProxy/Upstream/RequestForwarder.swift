/// Sends authorized requests to endpoints or handlers: which endpoint, retries, bodies, and tunnels. It has no state of
/// its own: every function is lent that of the loop.
enum RequestForwarder {}
