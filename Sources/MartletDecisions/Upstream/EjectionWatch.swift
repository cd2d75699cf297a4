internal import MartletConfig
package import MartletCore
internal import MartletIO

/// Logs when endpoints are ejected and respond again: one line for each change, whichever loops notice it.
///
/// Each loop ejects endpoints for itself: an endpoint is ejected from the first loop that ejects it to the last one in
/// which it responds.
package final class EjectionWatch: Sendable {
    private struct State {
        /// In nanoseconds.
        package let since: Int64
        private var loops: Set<Int> = []

        package init(since: Int64) { self.since = since }

        /// - Returns: whether it is the first one.
        package mutating func insert(_ loop: Int) -> Bool {
            defer { loops.insert(loop) }
            return loops.isEmpty
        }

        /// - Returns: whether it was the last one.
        package mutating func remove(_ loop: Int) -> Bool { loops.remove(loop) != nil && loops.isEmpty }
    }

    private let logger: Logger
    private let ejected = Lock<[EndpointIdentity: State]>([:])

    package init(_ logger: Logger) { self.logger = logger }

    /// A loop has ejected an endpoint.
    /// - Parameters:
    ///   - reason: in words.
    ///   - failures: in a row.
    package func ejected(_ endpoint: EndpointIdentity, by loop: Int, reason: String, failures: Int, at now: Int64) {
        let isNew = ejected.withLock { $0[endpoint, default: State(since: now)].insert(loop) }
        guard isNew else { return }
        logger.warning(
            "upstream endpoint ejected",
            Self.fields(endpoint) + [("reason", reason), ("failures", String(failures))])
    }

    /// An endpoint that a loop had ejected has responded.
    package func responded(_ endpoint: EndpointIdentity, in loop: Int, at now: Int64) {
        let since: Int64? = ejected.withLock { ejected in
            guard ejected[endpoint]?.remove(loop) == true else { return nil }
            return ejected.removeValue(forKey: endpoint)?.since
        }
        guard let since else { return }
        logger.info(
            "upstream endpoint responds again",
            Self.fields(endpoint) + [("ejected_seconds", String((now &- since) / 1_000_000_000))])
    }

    /// An endpoint has left the configuration.
    package func forget(_ endpoint: EndpointIdentity) { ejected.withLock { $0[endpoint] = nil } }

    private static func fields(_ endpoint: EndpointIdentity) -> [(String, String)] {
        var fields = [("upstream", endpoint.upstream), ("endpoint", EndpointText.url(endpoint.address))]
        if let resolved = endpoint.resolved { fields.append(("address", resolved.description)) }
        return fields
    }
}

/// What a loop tells of its endpoints.
package struct LoopEjections {
    package let watch: EjectionWatch
    package let loop: Int

    package init(watch: EjectionWatch, loop: Int) {
        self.watch = watch
        self.loop = loop
    }
}
