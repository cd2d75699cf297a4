internal import MartletCore

/// Requests that come back to the gateway.
extension Failure {
    /// This gateway has forwarded the request already: an endpoint of an upstream is the gateway itself, or leads to it.
    package static let loopDetected = Failure(status: 508, code: "loop_detected", reason: "request.loop_detected")
}
