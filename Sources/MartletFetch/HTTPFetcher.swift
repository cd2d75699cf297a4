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
/// Certificates are always checked, proxies of the environment are not used, answers are not decompressed, and
/// connections are kept and shared (HTTP/2 where the server speaks it).
package final class HTTPFetcher: Sendable {
    private static let isStarted = martlet_curl_start() == CURLE_OK

    private let worker: FetchWorker
    private let thread: SystemThread

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

    /// Reads one document.
    /// - Throws: a `fetch.` code. A redirect is a failure, every other status is an answer.
    package func get(
        _ url: String, timeout: Duration, maximumBytes: Int, headers: [(name: String, value: String)] = []
    ) async throws(FetchFailure) -> FetchResponse {
        try await send(FetchRequest(url, headers: headers, timeout: timeout, maximumBytes: maximumBytes))
    }

    /// Sends one request, once; ends early when the task is cancelled.
    /// - Throws: a `fetch.` code. A redirect is a failure, every other status is an answer.
    package func send(_ request: FetchRequest) async throws(FetchFailure) -> FetchResponse {
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
        worker.stop()
        thread.join()
    }
}
