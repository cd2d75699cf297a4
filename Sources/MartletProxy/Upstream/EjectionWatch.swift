internal import MartletConfig
package import MartletCore
internal import MartletIO
private import Synchronization

/// Logs when endpoints are ejected and respond again: one line for each change, whichever loops notice it.
///
/// Each loop ejects endpoints for itself; the last one to notice something decides what the process has logged.
package final class EjectionWatch: Sendable {
    private let logger: Logger
    /// Since when endpoints are ejected, in nanoseconds.
    private let ejected = Mutex<[EndpointIdentity: Int64]>([:])

    package init(_ logger: Logger) { self.logger = logger }

    /// A loop has ejected an endpoint.
    /// - Parameters:
    ///   - reason: in words.
    ///   - failures: in a row.
    func ejected(_ endpoint: EndpointIdentity, reason: String, failures: Int, at now: Int64) {
        let isNew = ejected.withLock { ejected in
            guard ejected[endpoint] == nil else { return false }
            ejected[endpoint] = now
            return true
        }
        guard isNew else { return }
        logger.warning(
            "upstream endpoint ejected",
            Self.fields(endpoint) + [("reason", reason), ("failures", String(failures))])
    }

    /// An endpoint that a loop had ejected has responded.
    func responded(_ endpoint: EndpointIdentity, at now: Int64) {
        guard let since = ejected.withLock({ $0.removeValue(forKey: endpoint) }) else { return }
        logger.info(
            "upstream endpoint responds again",
            Self.fields(endpoint) + [("ejected_seconds", String((now &- since) / 1_000_000_000))])
    }

    /// An endpoint has left the configuration.
    func forget(_ endpoint: EndpointIdentity) { ejected.withLock { $0[endpoint] = nil } }

    private static func fields(_ endpoint: EndpointIdentity) -> [(String, String)] {
        var fields = [("upstream", endpoint.upstream), ("endpoint", EndpointText.url(endpoint.address))]
        if let resolved = endpoint.resolved { fields.append(("address", resolved.description)) }
        return fields
    }
}
