package import MartletCore

/// Options for all requests of a fetcher.
package struct FetchOptions: Sendable {
    /// Whom requests trust and which proxy they use, unless they say otherwise.
    package var route = OutboundRoute()
    package var userAgent = "martlet"
    /// A PEM file of certificate authorities to trust instead of the system's.
    package var caFile: String? {
        get { route.caFile }
        set { route.caFile = newValue }
    }

    package init() {}
}

/// An HTTP client: libcurl on a dedicated thread, with timeouts, limits and no redirects.
///
/// Certificates are always verified, proxies are those of its options alone, and responses are not decompressed. A
/// request that is not repeatable is sent at most once, on a new connection; others share pooled connections (HTTP/2 if
/// the server supports it). The number of requests in flight is limited separately for each ``FetchPurpose``.
package final class HTTPFetcher: Sendable {
    private let options: FetchOptions
    private let worker: TransferWorker
    private let slots = FetchSlots()

    /// Starts the thread.
    package init(_ options: FetchOptions = FetchOptions()) throws(HTTPCallError) {
        self.options = options
        worker = try TransferWorker(name: "martlet-fetch", keptConnections: 16)
    }

    deinit { worker.stop() }

    /// Fetches a document with GET; retries if a reused connection closed without a response.
    /// - Throws: a `fetch.` code. A redirect is an error; every other status is returned.
    package func get(
        _ url: String, for purpose: FetchPurpose, timeout: Duration, maximumBytes: Int,
        headers: [(name: String, value: String)] = [], via route: OutboundRoute? = nil
    ) async throws(HTTPCallError) -> HTTPCallResponse {
        try await send(
            HTTPCall(url, headers: headers, timeout: timeout, maximumBytes: maximumBytes, isRepeatable: true),
            for: purpose, via: route)
    }

    /// Sends a request as soon as its purpose has a free slot; task cancellation aborts it.
    /// - Throws: a `fetch.` code. A redirect is an error; every other status is returned.
    package func send(
        _ request: HTTPCall, for purpose: FetchPurpose, via route: OutboundRoute? = nil
    ) async throws(HTTPCallError) -> HTTPCallResponse {
        let start = ContinuousClock.now
        let slot = try await reserve(purpose, within: request.timeout)
        var request = request
        request.timeout -= ContinuousClock.now - start
        return try await send(request, in: slot, via: route)
    }

    /// Waits for a slot, so that a single-use credential is consumed only when it can be sent immediately.
    /// - Throws: `fetch.overloaded` immediately if the queue is full, `fetch.timeout`, `fetch.cancelled`,
    ///   `fetch.stopped`.
    package func reserve(_ purpose: FetchPurpose, within limit: Duration) async throws(HTTPCallError) -> FetchSlot {
        try await slots.acquire(purpose, within: limit)
    }

    /// Whether a request of this owner would get or wait for a slot now; returns immediately.
    package func hasCapacity(_ purpose: FetchPurpose, for owner: WorkOwner) -> Bool {
        slots.hasCapacity(purpose, for: owner)
    }

    /// Sends a request in a slot, which can be reused for further requests one at a time.
    /// - Throws: `fetch.overloaded` while another request uses the slot; otherwise like ``send(_:for:)``.
    package func send(
        _ request: HTTPCall, in slot: FetchSlot, via route: OutboundRoute? = nil
    ) async throws(HTTPCallError) -> HTTPCallResponse {
        guard slot.begin() else { throw .overloaded }
        defer { slot.end() }
        let target = try FetchTarget(request.url)
        let cancellation = FetchCancellation()
        let (worker, route, userAgent) = (worker, route ?? options.route, options.userAgent)
        let outcome: FetchTransfer.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                worker.add(
                    FetchTransfer(
                        request: request, target: target, route: route, userAgent: userAgent,
                        cancellation: cancellation
                    ) { continuation.resume(returning: $0) })
            }
        } onCancel: {
            cancellation.cancel()
            worker.wake()
        }
        return try outcome.get()
    }

    /// Stops the thread; pending requests fail with `fetch.stopped`.
    package func shutdown() {
        slots.stop()
        worker.shutdown()
    }
}
