/// A downstream connection that is not registered with the poller yet.
struct DeferredRegistration {
    let downstream: Handle<DownstreamConnection>
    let since: Int64
}
