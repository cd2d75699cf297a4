/// What works and is hardly meant.
extension GatewayConfiguration {
    /// Warns of attempts that may take longer than all attempts together.
    func warnOfLongAttempts(_ diagnostics: inout Diagnostics) {
        var attempts: [String: Duration] = [:]
        for upstream in upstreams {
            guard let retries = upstream.policies.retries, retries.attempts > 0 else { continue }
            attempts[upstream.name.value] = retries.perTryTimeout
        }
        for route in routes {
            guard let whole = route.timeout, let name = route.upstream, let attempt = attempts[name.value],
                attempt >= whole
            else { continue }
            diagnostics.warning(
                .configBadValue, at: route.name.location,
                "route \(quoted(route.name.value)): per_try_timeout (\(attempt.configurationText)) is not shorter than "
                    + "its timeout (\(whole.configurationText)), so that no attempt is followed by another")
        }
    }
}
