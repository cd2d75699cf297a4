/// The target of a redirect, with `$path`, `$query` and `$host` of the request.
///
/// Whatever a request contains, the target stays on the host of the template, or on the request's own.
package struct RedirectTemplate: Sendable, Equatable {
    /// The part of a URL that a variable stands in.
    enum Component: Sendable, Equatable { case authority, path, query, fragment }

    enum Part: Sendable, Equatable {
        case literal([UInt8])
        case path(in: Component)
        case query
        case host(in: Component)
    }

    let parts: [Part]

    /// Whether the request decides which host the client is sent to.
    package var namesHost: Bool { parts.contains(.host(in: .authority)) }

    init(_ text: String) throws(PatternError) { parts = try RedirectParser.parse(text) }

    /// The target for a request.
    ///
    /// - Parameters:
    ///   - authority: the value of `Host` or `:authority`; a port is left out.
    ///   - path: normalized.
    ///   - query: without the question mark.
    /// - Returns: `nil` if the target would be read as one on another host.
    package func render(authority: Span<UInt8>, path: Span<UInt8>, query: Span<UInt8>) -> [UInt8]? {
        guard path.count > 0, path[0] == .slash else { return nil }
        var target: [UInt8] = []
        // A question mark that was removed, because what followed it was empty.
        var owesQuestionMark = false
        for part in parts {
            switch part {
            case .literal(let text):
                if owesQuestionMark, text.first == UInt8(ascii: "&") {
                    target.append(UInt8(ascii: "?"))
                    target += text.dropFirst()
                } else {
                    target += text
                }
                owesQuestionMark = false
            case .path(let component): Self.append(path, in: component, to: &target)
            case .host(let component): Self.append(host: authority, in: component, to: &target)
            case .query where query.count > 0: Self.append(query, in: .fragment, to: &target)
            case .query:
                if let last = target.last, last == UInt8(ascii: "?") || last == UInt8(ascii: "&") {
                    target.removeLast()
                    owesQuestionMark = last == UInt8(ascii: "?")
                }
            }
        }
        // A client would read a host after two slashes.
        let isAmbiguous = target.count > 1 && target[0] == .slash && (target[1] == .slash || target[1] == 0x5C)
        return isAmbiguous ? nil : target
    }

    private static func append(host authority: Span<UInt8>, in component: Component, to target: inout [UInt8]) {
        guard let host = HostName(in: authority) else { return }
        let brackets = host.isBracketed ? 1 : 0
        append(authority.extracting(host.start - brackets..<host.end + brackets), in: component, to: &target)
    }

    /// Appends a text of the request; what could end a header line or the part of the URL is percent-encoded.
    private static func append(_ text: Span<UInt8>, in component: Component, to target: inout [UInt8]) {
        for index in 0..<text.count {
            let byte = text[index]
            // A parameter's value must not end where the request's text has a '&'.
            let isKept =
                component == .query
                ? byte.isUnreserved || byte == .slash || byte == UInt8(ascii: ":") : RedirectParser.isAllowed(byte)
            if isKept {
                target.append(byte)
            } else {
                target += [.percent, (byte >> 4).hexadecimalDigit, byte.hexadecimalDigit]
            }
        }
    }
}
