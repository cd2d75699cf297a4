package import MartletCore
package import MartletProvider
private import Synchronization

/// Log lines of level `debug` about credentials, connections and retries, and warnings about peers.
///
/// Nothing is formatted unless that level is enabled: callers check ``isOn`` first, off the path of successful
/// requests.
package struct DebugLog: Sendable {
    /// Concurrent explanations of rejected credentials; further rejections are logged with their code alone.
    private static let explanationLimit = 16

    private final class Explanations: Sendable {
        package let underWay = Atomic(0)
    }

    private let logger: Logger
    private let explanations = Explanations()
    /// Warnings that all loops of a group share.
    package let warnings: PeerWarnings

    /// - Parameters:
    ///   - logger: where lines are written.
    ///   - warnings: those of other loops, too; `nil` for own ones.
    package init(_ logger: Logger, warnings: PeerWarnings? = nil) {
        self.logger = logger
        self.warnings = warnings ?? PeerWarnings(logger)
    }

    /// Whether the level is enabled.
    package var isOn: Bool { logger.writes(.debug) }

    /// Logs an event of a connection without a request.
    package func connection(_ event: String, _ code: ErrorCode, client: String) {
        logger.debug(event, ("code", "\(code)"), ("client", client))
    }

    /// Logs an attempt that failed and is retried.
    package func retry(requestID: String, upstream: String, reason: ErrorCode) {
        logger.debug(
            "retrying upstream", ("request_id", requestID), ("upstream", upstream), ("code", "\(reason)"))
    }

    /// Logs a credential that was rejected, or could not be verified.
    /// - Parameters:
    ///   - provider: the provider that verified it; it explains which check failed, where it can.
    ///   - credential: the rejected credential.
    package func credentialRejected(
        requestID: String, _ error: AuthenticationError, provider: ProviderHandle?, credential: Credential,
        in context: AuthenticationContext
    ) {
        var fields = [("request_id", requestID), ("code", "\(error.code)")]
        if let provider { fields.append(("provider", provider.name)) }
        if let cause = error.cause as? StoreError { fields.append(("cause", "\(cause.code)")) }
        logger.debug("credential rejected", fields)
        // A log line is no reason to send a credential to another system once more.
        guard let provider, let explaining = provider.explaining, error.disposition == .rejected, !provider.isSelective
        else { return }
        let explanations = explanations
        guard explanations.underWay.add(1, ordering: .relaxed).newValue <= DebugLog.explanationLimit else {
            explanations.underWay.subtract(1, ordering: .relaxed)
            return
        }
        Task { [logger] in
            for outcome in await explaining.explain(credential, in: context) {
                guard let failure = outcome.failure else { continue }
                logger.debug(
                    "credential check failed", ("request_id", requestID), ("provider", provider.name),
                    ("check", outcome.check), ("code", "\(failure)"), ("detail", outcome.detail))
            }
            explanations.underWay.subtract(1, ordering: .relaxed)
        }
    }
}
