package import MartletHTTP
package import MartletResponder
package import MartletRouter

/// The response of a route that has one of its own, for a request whose body is still to come.
///
/// A class, so that exchanges without one only have a reference.
package final class PreparedResponse: Sendable {
    package let response: LocalResponse

    package init(_ response: LocalResponse) { self.response = response }
}

/// When a route's own response is sent.
package enum ResponseMoment: Equatable {
    /// The connection is kept, because the request is complete.
    case now
    /// As soon as the body was received, and discarded: the connection is kept.
    case afterBody
    /// The connection closes, because the client has not begun to send the body, or it is long.
    case insteadOfBody

    /// Longer bodies are not waited for.
    static let maximumDiscarded = 64 * 1024

    /// - Parameters:
    ///   - framing: of the request's body.
    ///   - isComplete: whether it was received.
    ///   - expectsContinue: whether the client waits for 100 (Continue) before it sends the body.
    package init(_ framing: BodyFraming, isComplete: Bool, expectsContinue: Bool) {
        if isComplete {
            self = .now
        } else if expectsContinue {
            self = .insteadOfBody
        } else if case .length(let count) = framing, count > ResponseMoment.maximumDiscarded {
            self = .insteadOfBody
        } else {
            self = .afterBody
        }
    }
}

extension RouteResponse {
    /// The response to a request; `nil` if a redirect would lead to another host.
    ///
    /// - Parameters:
    ///   - path: normalized.
    ///   - query: with its question mark, or empty.
    package func response(authority: Span<UInt8>, path: Span<UInt8>, query: Span<UInt8>) -> LocalResponse? {
        switch self {
        case .redirect(let template, let status):
            let text = query.count > 0 ? query.extracting(droppingFirst: 1) : query
            guard let target = template.render(authority: authority, path: path, query: text) else { return nil }
            let location = String(decoding: target, as: UTF8.self)
            return LocalResponse(status: status, fields: [("Location", location)], body: [])
        case .fixed(let status, let contentType, let body):
            let fields = contentType.map { [(name: "Content-Type", value: $0)] } ?? []
            return LocalResponse(status: status, fields: fields, body: body)
        }
    }
}
