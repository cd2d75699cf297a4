package import MartletCore
internal import MartletProvider
private import Synchronization

/// Lines of the level `debug` about what became of credentials, connections and attempts.
///
/// Where that level is not written nothing is made: callers ask ``isOn`` first, off the path of requests that succeed.
package struct DebugLog: Sendable {
    /// Accounts of single checks that may be under way; more refusals than that are told by their code alone.
    private static let explanationLimit = 16

    private final class Explanations: Sendable {
        let underWay = Atomic(0)
    }

    private let logger: Logger
    private let explanations = Explanations()

    /// - Parameter logger: where lines go.
    package init(_ logger: Logger) { self.logger = logger }

    /// Whether anything is written.
    package var isOn: Bool { logger.writes(.debug) }

    /// A line without a request.
    func connection(_ event: String, _ code: ErrorCode, client: String) {
        logger.debug(event, ("code", "\(code)"), ("client", client))
    }

    /// An attempt failed and another one follows.
    func retry(requestID: String, upstream: String, reason: ErrorCode) {
        logger.debug(
            "an upstream is tried again", ("request_id", requestID), ("upstream", upstream), ("reason", "\(reason)"))
    }

    /// A credential was refused, or could not be judged.
    /// - Parameters:
    ///   - provider: who judged it; it is asked which of its checks failed, where it can tell.
    ///   - credential: what it judged.
    func refused(
        requestID: String, _ error: AuthenticationError, provider: ProviderHandle?, credential: Credential,
        in context: AuthenticationContext
    ) {
        var fields = [("request_id", requestID), ("code", "\(error.code)")]
        if let provider { fields.append(("provider", provider.name)) }
        if let cause = error.cause as? StoreError { fields.append(("cause", "\(cause.code)")) }
        logger.debug("a credential was refused", fields)
        guard let provider, let explaining = provider.explaining, error.disposition == .rejected else { return }
        let explanations = explanations
        guard explanations.underWay.add(1, ordering: .relaxed).newValue <= DebugLog.explanationLimit else {
            explanations.underWay.subtract(1, ordering: .relaxed)
            return
        }
        Task { [logger] in
            for verdict in await explaining.explain(credential, in: context) {
                guard let failure = verdict.failure else { continue }
                logger.debug(
                    "a check failed", ("request_id", requestID), ("provider", provider.name), ("check", verdict.check),
                    ("code", "\(failure)"), ("detail", verdict.detail))
            }
            explanations.underWay.subtract(1, ordering: .relaxed)
        }
    }
}
