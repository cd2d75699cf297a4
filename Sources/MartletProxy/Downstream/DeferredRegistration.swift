/// A downstream connection that is not registered with the poller yet.
struct DeferredRegistration {
    let downstream: EventToken
    let since: Int64
}
