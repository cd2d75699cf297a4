internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP

extension Exchange {
    /// Whether the head for the upstream was sent completely.
    @inline(__always)
    var hasSentHead: Bool { forwarding.head.isSent }

    /// Whether the rest of the request's body may be spliced.
    @inline(__always)
    var hasSpliceableBody: Bool {
        responder == .upstream && SpliceRules.isWorthwhile(body.framing, remaining: body.remaining)
            && heldBody.isEmpty && hasSentHead && !bodyWatch.isActive
    }
}

extension DownstreamConnection {
    /// Whether the body of its request may be moved into a pipe.
    @inline(__always)
    var canSpliceRequest: Bool {
        kind == .http1 && !origin.rules.isSecure && phase == .exchange && pipe.isNone && reader.input.isEmpty
    }

    /// Whether a response may be moved from a pipe to it.
    @inline(__always)
    var acceptsSplicedResponse: Bool { kind == .http1 && !origin.rules.isSecure && transport.output.isEmpty }
}

extension UpstreamConnection {
    /// Whether the rest of its response may be moved into a pipe.
    @inline(__always)
    var canSpliceResponse: Bool {
        kind == .http1 && !transport.isSecure && phase == .body && pipe.isNone
            && SpliceRules.isWorthwhile(response.framing, remaining: response.remaining) && input.isEmpty
    }

    /// Whether the bytes of a body may be sent to its socket without being buffered first.
    @inline(__always)
    var acceptsDirectBody: Bool { kind == .http1 && !transport.isSecure && isUp && output.isEmpty }

    /// Whether a request may be moved from a pipe to it.
    @inline(__always)
    var acceptsSplicedRequest: Bool { acceptsDirectBody && !transport.isReadClosed && transport.output.isEmpty }
}

extension UpstreamResponse {
    /// Counts bytes that were spliced to the client.
    @inline(__always)
    mutating func skip(_ length: Int) { remaining &-= length }
}
