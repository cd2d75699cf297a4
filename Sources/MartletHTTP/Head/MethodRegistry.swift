/// The methods that are registered (IANA's HTTP Method Registry, RFC 9110 §16.1).
///
/// Methods are case-sensitive, but some frameworks fold case: they treat `post` as `POST`, which would bypass a route
/// for `POST`.
package enum MethodRegistry {
    private static let names: [[UInt8]] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "ACL", "BASELINE-CONTROL",
        "BIND",
        "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
        "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PRI", "PROPFIND", "PROPPATCH", "QUERY", "REBIND",
        "REPORT",
        "SEARCH", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    ].map { Array($0.utf8) }

    /// Whether a method is a registered one in another letter case.
    package static func hasInOtherCase(_ method: Span<UInt8>) -> Bool {
        names.contains { isOtherCase(method, of: $0.span) }
    }

    /// Whether two methods differ in letter case and in nothing else.
    package static func isOtherCase(_ method: Span<UInt8>, of name: Span<UInt8>) -> Bool {
        guard method.count == name.count else { return false }
        var differs = false
        for index in 0..<name.count where method[index] != name[index] {
            guard ASCII.lowered(method[index]) == ASCII.lowered(name[index]) else { return false }
            differs = true
        }
        return differs
    }
}
