private import CCurl
internal import MartletCore

/// What all requests of a fetcher share.
package struct FetchOptions: Sendable {
    /// The authorities to trust instead of the system's, as a PEM file.
    package var caFile: String?
    package var userAgent = "martlet"

    package init() {}
}

/// Asks other services: libcurl on one thread of its own, with deadlines, bounds and no redirects.
///
/// Certificates are always checked, proxies of the environment are not used, and answers are not decompressed. A request
/// that is not repeatable is sent at most once, on a connection of its own; for the others connections are kept and shared
/// (HTTP/2 where the server speaks it). How many requests are under way is bounded for each ``FetchPurpose`` by itself.
package final class HTTPFetcher: Sendable {
    private static let isStarted = martlet_curl_start() == CURLE_OK

    private let worker: FetchWorker
    private let thread: SystemThread
    private let slots = FetchSlots()

    /// Starts the thread.
    package init(_ options: FetchOptions = FetchOptions()) throws(FetchFailure) {
        guard HTTPFetcher.isStarted else { throw .setUpFailed }
        let worker = try FetchWorker(options)
        self.worker = worker
        do {
            thread = try SystemThread(name: "martlet-fetch") { worker.run() }
        } catch {
            throw .setUpFailed
        }
    }

    deinit { worker.stop() }

    /// Reads one document; asks again where a kept connection ended under the request.
    /// - Throws: a `fetch.` code. A redirect is a failure, every other status is an answer.
    package func get(
        _ url: String, for purpose: FetchPurpose, timeout: Duration, maximumBytes: Int,
        headers: [(name: String, value: String)] = []
    ) async throws(FetchFailure) -> FetchResponse {
        try await send(
            FetchRequest(url, headers: headers, timeout: timeout, maximumBytes: maximumBytes, isRepeatable: true),
            for: purpose)
    }

    /// Sends one request as soon as its purpose has a slot; ends early when the task is cancelled.
    /// - Throws: a `fetch.` code. A redirect is a failure, every other status is an answer.
    package func send(
        _ request: FetchRequest, for purpose: FetchPurpose
    ) async throws(FetchFailure) -> FetchResponse {
        let start = ContinuousClock.now
        let slot = try await reserve(purpose, within: request.timeout)
        var request = request
        request.timeout -= ContinuousClock.now - start
        return try await send(request, in: slot)
    }

    /// Waits for a slot, so that what works once is used up only when it can be sent at once.
    /// - Throws: `fetch.overloaded` at once when too many wait, `fetch.timeout`, `fetch.cancelled`, `fetch.stopped`.
    package func reserve(_ purpose: FetchPurpose, within limit: Duration) async throws(FetchFailure) -> FetchSlot {
        try await slots.acquire(purpose, within: limit)
    }

    /// Sends one request in a slot; a slot is good for one after the other.
    /// - Throws: `fetch.overloaded` while another request uses the slot, else as ``send(_:for:)``.
    package func send(_ request: FetchRequest, in slot: FetchSlot) async throws(FetchFailure) -> FetchResponse {
        guard slot.begin() else { throw .overloaded }
        defer { slot.end() }
        let pending = PendingTicket()
        let worker = worker
        let outcome: FetchTicket.Outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ticket = FetchTicket(request) { continuation.resume(returning: $0) }
                pending.start(ticket)
                if let refusal = worker.add(ticket) { ticket.finish(.failure(refusal)) }
            }
        } onCancel: {
            pending.cancel()
            worker.noteCancellation()
        }
        return try outcome.get()
    }

    /// Ends the thread; requests under way fail as `fetch.stopped`.
    package func shutdown() {
        slots.stop()
        worker.stop()
        thread.join()
    }
}
