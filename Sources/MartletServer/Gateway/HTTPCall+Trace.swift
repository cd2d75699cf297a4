internal import MartletCore
internal import MartletTracing

extension HTTPCall {
    /// Records the call in the trace of the request that it is for. The called service gets no context.
    func traced(
        _ work: () async throws(HTTPCallError) -> HTTPCallResponse
    ) async throws(HTTPCallError) -> HTTPCallResponse {
        try await TraceScope.span(
            method, .client, spanAttributes,
            outcome: { [SpanAttribute("http.response.status_code", $0.status)] }, work)
    }

    private var method: String {
        if case .none = content { return "GET" }
        return "POST"
    }

    /// What the call says of itself: not the query, which may have secrets, and no credentials.
    var spanAttributes: [SpanAttribute] {
        let target = CallTarget(url)
        var attributes = [
            SpanAttribute("http.request.method", method), SpanAttribute("url.full", OwnToken.masked(target.text)),
            SpanAttribute("server.address", socket ?? target.host),
        ]
        if socket == nil, let port = target.port { attributes.append(SpanAttribute("server.port", port)) }
        return attributes
    }
}

/// The parts of a URL that a span may have.
struct CallTarget: Equatable {
    /// Without user info, query and fragment.
    let text: String
    /// Without the brackets of an IPv6 address.
    let host: String
    let port: Int?

    /// - Parameter url: is not validated; one that cannot be called has any parts.
    init(_ url: String) {
        let parts = url.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            (text, host, port) = ("", "", nil)
            return
        }
        let scheme = parts[0].lowercased()
        let rest = parts[1].prefix { $0 != "?" && $0 != "#" }
        let path = rest.drop { $0 != "/" }
        let authority = rest[..<path.startIndex].split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        text = "\(scheme)://\(authority)\(path)"
        let name: Substring
        if let colon = authority.lastIndex(of: ":"), authority.last != "]" {
            name = authority[..<colon]
            port = Int(authority[authority.index(after: colon)...])
        } else {
            name = authority
            port = ["https": 443, "http": 80][scheme]
        }
        host = name.hasPrefix("[") && name.hasSuffix("]") ? String(name.dropFirst().dropLast()) : String(name)
    }
}
