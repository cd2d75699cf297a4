internal import MartletAuthenticator
internal import MartletCore
internal import MartletHTTP

/// The cookies of an upstream's responses.
extension ResponseReader {
    /// Cuts the gateway's cookies out of a pending head, and adds the one that the response sets and what is left of
    /// the route's rate limits.
    @inline(never)
    mutating func editHead(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        SelectedLines.note(status: response.status, exchange, &loop)
        cutCookies(exchange, &loop)
        RateLimitFields.append(of: exchange, &loop)
        if loop.exchanges[exchange].credential.setsCookie { loop.setCookies(of: exchange) }
    }

    /// Removes the fields of a pending head with which an upstream would set or delete a cookie of the gateway.
    @inline(never)
    mutating func cutCookies(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard response.fields.has(.setCookie), let browser = loop.context.snapshot.browser else { return }
        let head = unsafe Array(loop.context.scratch.pending[exchange].bytes)
        let kept = browser.withoutOwnCookies(head)
        guard kept.count < head.count else { return }
        loop.context.scratch.pending[exchange].removeAll()
        loop.context.scratch.pending[exchange].append(kept)
    }
}
