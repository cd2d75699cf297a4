package import MartletCore

/// What a collector said to a document, or that it said nothing.
package enum ExportResult: Sendable, Equatable {
    /// It has the document, but for some spans.
    case accepted(rejected: Int)
    /// It will not take the document, or is no collector.
    case rejected(String)
    /// It may take the document later.
    /// - Parameter after: how long it asked to wait.
    case unavailable(String, after: Duration?)

    /// - Parameters:
    ///   - status: of the response.
    ///   - body: of the response.
    package init(status: Int, body: [UInt8], retryAfter: Duration?) {
        switch status {
        case 200..<300:
            self =
                ExportResponse.rejectedSpans(in: body).map { .accepted(rejected: $0) }
                ?? .rejected("the response with status \(status) is none of a collector")
        // The ones that OTLP says to repeat.
        case 429, 502, 503, 504: self = .unavailable("status \(status)", after: retryAfter)
        default: self = .rejected("status \(status)")
        }
    }
}

/// When documents are sent, and sent again; it knows neither clock nor network.
///
/// One document is on its way at a time. One that the collector cannot take is sent again after a pause that doubles,
/// and given up after a while, so that newer spans get their turn.
package struct ExportSchedule: Sendable {
    /// What is to be done now.
    package enum Step: Sendable, Equatable {
        /// Send what waits.
        case send
        /// Send the document again that was not taken.
        case sendAgain
        /// Nothing, until then at most.
        case wait(until: MonotonicTime)
    }

    /// How the document that was on its way is treated.
    package enum Outcome: Sendable, Equatable {
        /// - Parameter lost: how many of its spans.
        case done(lost: Int)
        case again
        case drop(SpanLoss)
    }

    /// How long spans wait for others to be sent with.
    package static let interval = Duration.seconds(1)
    package static let maximumAttempts = 5
    private static let shortestPause = Duration.milliseconds(500)
    private static let longestPause = Duration.seconds(30)

    private var isSending = false
    private var attempts = 0
    /// Whether there is a document to be sent again.
    private var hasDocument = false
    private var notBefore: MonotonicTime?
    /// When the first span that waits came.
    private var waitingSince: MonotonicTime?

    package init() {}

    /// There is something to send from now on.
    package mutating func added(at now: MonotonicTime) { if waitingSince == nil { waitingSince = now } }

    /// - Parameters:
    ///   - isFull: whether there is enough for a whole document.
    ///   - isStopping: whether nothing more will come.
    package func next(at now: MonotonicTime, isFull: Bool, isStopping: Bool) -> Step {
        if isSending { return .wait(until: .never) }
        if let notBefore, notBefore > now { return .wait(until: notBefore) }
        if hasDocument { return .sendAgain }
        guard let waitingSince else { return .wait(until: .never) }
        let due = waitingSince + Self.interval
        return isFull || isStopping || due <= now ? .send : .wait(until: due)
    }

    /// A document is on its way.
    /// - Parameter leaves: whether more waits.
    package mutating func began(leaves more: Bool, at now: MonotonicTime) {
        isSending = true
        if !hasDocument { waitingSince = more ? now : nil }
        attempts += 1
    }

    /// The document has arrived, or has not.
    /// - Parameter random: from 0 to 1, so that many gateways do not come back at the same time.
    package mutating func ended(_ result: ExportResult, at now: MonotonicTime, random: Double) -> Outcome {
        isSending = false
        switch result {
        case .accepted(let rejected):
            finish()
            return .done(lost: rejected)
        case .rejected:
            finish()
            return .drop(.rejected)
        case .unavailable(_, let after):
            let pause = after.map { min($0, Self.longestPause) } ?? Self.pause(after: attempts, random: random)
            notBefore = now + pause
            hasDocument = attempts < Self.maximumAttempts
            guard !hasDocument else { return .again }
            attempts = 0
            return .drop(.unavailable)
        }
    }

    private mutating func finish() { (attempts, hasDocument, notBefore) = (0, false, nil) }

    private static func pause(after attempts: Int, random: Double) -> Duration {
        let whole = min(shortestPause * (1 << min(attempts - 1, 10)), longestPause)
        return whole * (0.5 + random / 2)
    }
}
